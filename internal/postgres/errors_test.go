package postgres

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestTransient(t *testing.T) {
	t.Parallel()
	server := func(code string) error { return fmt.Errorf("claim: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{server("57P01"), true},  // shut down
		{server("57P02"), true},  // crashed
		{server("57P03"), true},  // starting up
		{server("57P05"), true},  // idle_session_timeout
		{server("25P03"), true},  // idle_in_transaction_session_timeout
		{server("08006"), true},  // connection failure
		{server("08P01"), true},  // what PgBouncer says of all its errors
		{server("53300"), true},  // too many connections
		{server("40001"), true},  // serialization
		{server("40P01"), true},  // deadlock
		{server("57014"), false}, // canceled, or statement_timeout
		{server("57P04"), false}, // the database was dropped
		{server("25P02"), false}, // the transaction has failed before
		{server("25006"), false}, // read-only
		{server("53100"), false}, // the disk is full
		{server("28P01"), false}, // the password, which is renewed once
		{server("3D000"), false}, // no such database
		{io.ErrUnexpectedEOF, true},
		{net.ErrClosed, true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}, true},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, true},
		{&net.DNSError{Err: "server misbehaving", IsTemporary: true}, true},
		{io.ErrShortBuffer, false},
	} {
		if got := Transient(c.err); got != c.want {
			t.Errorf("%v: transient %v, want %v", c.err, got, c.want)
		}
	}
}
