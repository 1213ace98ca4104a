//go:build !linux

package process

import "syscall"

// Only Linux can tell a child that its parent died.
func signalOnParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
