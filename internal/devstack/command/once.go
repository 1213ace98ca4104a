package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"sumepoller/internal/devstack"
)

// once runs a command unless it succeeded before with the source as it is now:
// the stamp holds the source's hash. Programs at the same time wait for each
// other. It returns the exit code.
func once(ctx context.Context, source, stamp string, args []string) int {
	unlock, err := devstack.Lock("bin/.once.lock")
	if err != nil {
		return exitCode(err)
	}
	defer unlock()
	content, err := os.ReadFile(source)
	if err != nil {
		return exitCode(err)
	}
	sum := sha256.Sum256(content)
	want := []byte(hex.EncodeToString(sum[:]))
	if got, err := os.ReadFile(stamp); err == nil && bytes.Equal(got, want) {
		return 0
	}
	if err := spawn(ctx, args, nil); err != nil {
		return exitCode(err)
	}
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		return exitCode(fmt.Errorf("note that it is done: %w", err))
	}
	return 0
}
