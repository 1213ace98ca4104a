// Package cgroup holds processes to a share of a processor and an amount of
// memory, as a function's sandbox does. It writes to the control groups of
// Linux, version 1 or 2, which needs the right to: elsewhere New fails.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const (
	root   = "/sys/fs/cgroup"
	period = 20_000 // microseconds
)

// Group is a group of processes with limits.
type Group struct{ dirs []string }

// New makes an empty group that may use so many cores and bytes.
func New(cores float64, memory int64) (*Group, error) {
	name := "sumepoller-bench-" + strconv.Itoa(os.Getpid())
	quota := strconv.Itoa(int(cores * period))
	g := &Group{}
	var err error
	if _, missing := os.Stat(filepath.Join(root, "cgroup.controllers")); missing == nil {
		err = g.limit(filepath.Join(root, name),
			"cpu.max", quota+" "+strconv.Itoa(period), "memory.max", strconv.FormatInt(memory, 10))
	} else {
		err = errors.Join(
			g.limit(filepath.Join(root, "cpu", name), "cpu.cfs_period_us", strconv.Itoa(period), "cpu.cfs_quota_us", quota),
			g.limit(filepath.Join(root, "memory", name), "memory.limit_in_bytes", strconv.FormatInt(memory, 10)))
	}
	if err != nil {
		g.Remove()
		return nil, fmt.Errorf("no control group: %w", err)
	}
	return g, nil
}

// limit makes a group's folder and writes values into its files.
func (g *Group) limit(dir string, pairs ...string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	g.dirs = append(g.dirs, dir)
	for i := 0; i < len(pairs); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, pairs[i]), []byte(pairs[i+1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Add moves a process into the group; its later children begin there too.
func (g *Group) Add(pid int) error {
	for _, dir := range g.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("move into the control group: %w", err)
		}
	}
	return nil
}

// Remove removes the group. Its processes have to have ended.
func (g *Group) Remove() {
	for _, dir := range g.dirs {
		os.Remove(dir)
	}
}
