package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sumepoller/internal/cli"
	"sumepoller/internal/devstack"
	"sumepoller/internal/devstack/environment"
)

// asProgram makes this test's binary behave as the program.
const asProgram = "CLI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	environment.Isolate()
	os.Exit(m.Run())
}

// program prepares the program, in the repository's root directory.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	root, err := devstack.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), asProgram+"=1")
	for _, name := range []string{"JOB", "IDS", "FILE", "STATE", "FORMAT", "SETTINGS", "FUNCTION_URL"} {
		cmd.Env = append(cmd.Env, name+"=")
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// run returns the program's exit code, output and error output.
func run(t *testing.T, env []string, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := program(t, env, args...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
