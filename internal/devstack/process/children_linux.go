package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Children returns the ids of the processes whose parent is pid.
func Children(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state ppid …; the name can contain spaces and brackets
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err == nil {
			children = append(children, child)
		}
	}
	return children, nil
}

// Stopped reports whether a process is suspended.
func Stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return bytes.Contains(stat, []byte(") T "))
}
