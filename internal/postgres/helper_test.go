package postgres_test

import (
	"net"
	"strconv"
	"testing"
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
