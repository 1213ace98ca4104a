package server

import (
	"os"
	"path/filepath"

	"sumepoller/internal/devstack"
)

const (
	dirPrefix = "sumepoller-postgres-"
	lockName  = "in-use"
)

// sweep removes the folders of servers whose parents were killed before they
// could. A parent holds its folder's lock for as long as it lives.
func sweep(temp string) {
	locks, _ := filepath.Glob(filepath.Join(temp, dirPrefix+"*", lockName))
	for _, lock := range locks {
		if devstack.Abandoned(lock) {
			_ = os.RemoveAll(filepath.Dir(lock))
		}
	}
}

// lock marks the server's folder as in use. The file gets its name with the
// lock already on it, or another server could sweep the folder in between.
func (s *Server) lock() error {
	file := filepath.Join(s.dir, lockName)
	unlock, err := devstack.Lock(file + ".new")
	if err != nil {
		return err
	}
	s.unlock = unlock
	return os.Rename(file+".new", file)
}
