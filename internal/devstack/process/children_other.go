//go:build !linux

package process

import (
	"fmt"
	"os/exec"
	"strings"
)

// Children returns the ids of the processes whose parent is pid.
func Children(pid int) ([]int, error) {
	list, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var children []int
	for line := range strings.Lines(string(list)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}

// Stopped reports whether a process is suspended.
func Stopped(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || strings.HasPrefix(string(state), "T")
}
