//go:build !linux

package main

import "context"

// What make's handlers are only Linux tells.
func watchMake(context.Context, func()) {}
