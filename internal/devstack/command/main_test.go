package main_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sumepoller/internal/devstack"
)

// devstackPath is the program under test.
var devstackPath string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sumepoller-test-")
	if err != nil {
		panic(err)
	}
	devstackPath = filepath.Join(dir, "devstack")
	if out, err := exec.Command("go", "build", "-o", devstackPath, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program prepares the program, in the repository's root directory.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	root, err := devstack.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(devstackPath, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

func TestPostgres_ExitCode(t *testing.T) {
	t.Parallel()
	out, err := program(t, []string{"DEV_DATABASE_URL="}, "postgres", "--",
		"sh", "-c", `test -x "$PG_BIN/postgres" && echo "$DEV_DATABASE_URL"; exit 7`).Output()
	if code := exitCode(t, err); code != 7 {
		t.Errorf("exit code %d, want the command's 7", code)
	}
	if !strings.HasPrefix(string(out), "postgres://postgres:") {
		t.Errorf("output %q, want the URL of a server with a password", out)
	}
}

func TestPostgres_ServerGiven(t *testing.T) {
	t.Parallel()
	out, err := program(t, []string{"DEV_DATABASE_URL=mine"}, "postgres", "--", "sh", "-c", `echo "$DEV_DATABASE_URL"`).Output()
	if err != nil || string(out) != "mine\n" {
		t.Errorf("got %q, %v, want the server that was given", out, err)
	}
}

// TestMake_NPM runs make npm with a false npm, which notes each installation.
func TestMake_NPM(t *testing.T) {
	t.Parallel()
	root, err := devstack.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", string(makefile))
	write("internal/devstack/command/main.go", "")
	write("programs/node", "#!/bin/sh\necho v20.1.0\n")
	write("programs/npm", "#!/bin/sh\n[ \"$1\" = ci ] || exec echo 10.0.0\n[ ! -e fail ] || exit 4\nmkdir -p node_modules\necho ran >>ran\n")
	install := func() error {
		cmd := exec.Command("make", "-C", dir, "npm")
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "programs")+":"+os.Getenv("PATH"))
		return cmd.Run()
	}
	for _, content := range []string{"one", "one", "two"} {
		write("package-lock.json", content)
		errs := make(chan error, 2)
		for range cap(errs) { // at the same time
			go func() { errs <- install() }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	write("package-lock.json", "three")
	write("fail", "")
	if install() == nil {
		t.Error("got no error of a failed installation")
	}
	if err := os.Remove(filepath.Join(dir, "fail")); err != nil {
		t.Fatal(err)
	}
	if err := install(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ran"))
	if got := strings.Count(string(text), "ran"); err != nil || got != 3 {
		t.Errorf("installed %d times (%v), want 3: for one, two and three", got, err)
	}
}

func TestRun_Interrupted(t *testing.T) {
	adoptOrphans(t)
	for _, output := range []string{"building the functions", "schema migrated", "pending"} {
		t.Run(output, func(t *testing.T) {
			temp := t.TempDir()
			cmd := program(t, []string{"DEV_DATABASE_URL=", "TMPDIR=" + temp, "JOBS=20", "KEEP="}, "run")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			seen := false
			for lines.Scan() {
				if !seen && strings.Contains(lines.Text(), output) {
					seen = true
					_ = cmd.Process.Signal(syscall.SIGINT)
				}
			}
			if err := cmd.Wait(); exitCode(t, err) != 130 || !seen {
				t.Errorf("got %v (output seen: %v), want exit code 130", err, seen)
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) > 0 {
				t.Errorf("left in the temporary directory: %v (%v)", left, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if orphans := awaitOrphans(ctx); len(orphans) > 0 {
				t.Errorf("processes left: %q", orphans)
			}
		})
	}
}
