// Command infra is the CDK app: it reads the settings, checks the built functions
// and synthesizes the stacks into cdk.out. An error in the settings or the
// functions ends it before the CDK starts, with one line each. SETTINGS names
// another settings file than infra/settings.json.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
	"sumepoller/infra/stack"
)

func main() {
	s, err := prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	stack.Build(app, s, dist)
	app.Synth(nil)
}

// dist is where `make build` puts the functions.
const dist = "dist"

func prepare() (settings.Settings, error) {
	path := os.Getenv("SETTINGS")
	if path == "" {
		path = settings.Path
	}
	s, err := settings.Load(path)
	if err != nil {
		return s, err
	}
	if err := stack.CheckAssets(dist); err != nil {
		return s, err
	}
	if _, err := exec.LookPath("node"); err != nil {
		return s, errors.New("node: not found; the CDK needs Node.js 20 or newer")
	}
	return s, nil
}
