//go:build !linux

package process

import "syscall"

// Only Linux can signal a child when its parent dies.
func signalOnParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
