package server

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the user that runs the server.
type account struct {
	credential *syscall.Credential // nil: this process's user
}

// serverAccount returns this process's user, or nobody instead of root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and the user nobody is missing: %w", err)
	}
	uid, err := strconv.ParseInt(nobody.Uid, 10, 64) // -2 on macOS
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseInt(nobody.Gid, 10, 64)
	if err != nil {
		return nil, err
	}
	return &account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// tempDir returns a directory for temporary files that the account can enter.
func (a *account) tempDir() string {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if a.mayReach(dir) {
			return dir
		}
	}
	return os.TempDir()
}

// mayRead reports whether the account can run an installation. initdb puts the
// path between double quotes in a shell command.
func (a *account) mayRead(root string) bool {
	return !strings.ContainsAny(root, "\"$`\\") && a.mayReach(filepath.Join(root, "bin", "postgres")) && a.mayReach(filepath.Join(root, "lib"))
}

// mayReach reports whether everybody may enter (or run) the path and all
// directories above it.
func (a *account) mayReach(path string) bool {
	if a.credential == nil {
		return true
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
	}
}

// own gives a directory to the account. Others may enter it but not list it.
func (a *account) own(dir string) error {
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	return a.chown(dir)
}

// writeFile writes a file that only the account may read.
func (a *account) writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, fs.FileMode(0o600)); err != nil {
		return err
	}
	return a.chown(path)
}

func (a *account) chown(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}
