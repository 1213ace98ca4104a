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

// sweep removes the directories that killed processes left behind. A process
// holds the lock of its server's directory until it ends.
func sweep(temp string) {
	locks, _ := filepath.Glob(filepath.Join(temp, dirPrefix+"*", lockName))
	for _, lock := range locks {
		if devstack.Abandoned(lock) {
			_ = os.RemoveAll(filepath.Dir(lock))
		}
	}
}

// lock marks the server's directory as in use. The file is locked before it
// gets its name: otherwise another process could sweep it in between.
func (s *Server) lock() error {
	file := filepath.Join(s.dir, lockName)
	unlock, err := devstack.Lock(file + ".new")
	if err != nil {
		return err
	}
	s.unlock = unlock
	return os.Rename(file+".new", file)
}
