//go:build !linux

package main

import "context"

// Only Linux shows the signal handlers of another process.
func watchMake(context.Context, func()) {}
