package process

import "syscall"

func signalOnParentDeath(attr *syscall.SysProcAttr, sig syscall.Signal) {
	attr.Pdeathsig = sig
}
