package postgres_test

import (
	"net"
	"strconv"
	"testing"

	"sumepoller/internal/pgtest"
)

// Short names for the helpers that nearly every test of the stores uses.
var (
	uncounted, counted     = pgtest.Uncounted, pgtest.Counted
	claim, settle, release = pgtest.Claim, pgtest.Settle, pgtest.Release
	finish                 = pgtest.Finish
)

// portOf returns the port of an address.
func portOf(t testing.TB, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
