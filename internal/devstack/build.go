package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sumepoller/internal/devstack/process"
)

// buildGrace is the time for an interrupted build to remove its files.
const buildGrace = 5 * time.Second

// Root returns the repository's root: the nearest directory with a go.mod, from
// the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod in the working directory or above it: run this inside the repository")
		}
	}
}

// Bootstrap builds a function (poller, submit, migrate) for this machine and
// returns its binary's path, bin/local/NAME/bootstrap. An unchanged function
// takes a fraction of a second. Builds at the same time wait for each other,
// also those of other processes.
func Bootstrap(ctx context.Context, function string) (string, error) {
	return build(ctx, function, "./functions/"+function)
}

// build builds a package of the repository as Lambda would run it.
func build(ctx context.Context, name, pkg string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "local", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// An interrupted go build leaves files behind: give it a directory for them.
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	bootstrap := filepath.Join(dir, "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-tags", "lambda.norpc", "-o", bootstrap, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+work)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.Run(ctx, cmd, buildGrace); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, &out)
	}
	return bootstrap, nil
}

// Emulator returns the path of AWS's runtime interface emulator, which make
// installs into bin/.
func Emulator() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "aws-lambda-rie")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: install it with `make emulator` (make test and make run do)", err)
	}
	return path, nil
}
