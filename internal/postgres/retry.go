package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/secrets"
)

// How long a statement is tried again after its connection failed.
const (
	retryFor   = 5 * time.Second
	retryPause = 50 * time.Millisecond // the first; each further one is twice as long
	retryMost  = time.Second
)

// retry runs do until it brings something else than a failed connection, ctx
// ends, or the time for it is over. A login that is refused is tried once more:
// the connection that was refused has its password fetched anew. What do does
// must bear being done twice.
func retry(ctx context.Context, do func() error) error {
	started, renewed := time.Now(), false
	for pause := retryPause; ; pause = min(2*pause, retryMost) {
		err := do()
		if err == nil || ctx.Err() != nil || time.Since(started)+pause > retryFor {
			return explained(err)
		}
		switch {
		case transient(err):
		case refusedLogin(err) && !renewed:
			renewed = true
		default:
			return explained(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// explained says what to do about an error that stays until somebody does it.
func explained(err error) error {
	if sqlState(err) == "25006" {
		return fmt.Errorf("the database takes no writes here: connect to its writer, not to a replica, and leave default_transaction_read_only off: %w", err)
	}
	return err
}

// transient reports whether a statement failed with its connection, or lost to
// another transaction: the same statement can succeed a moment later. A
// canceled statement (57014, a timeout of the role's) and a dropped database
// (57P04) are not of this kind.
func transient(err error) bool {
	if code := sqlState(err); code != "" {
		switch code {
		case "57P01", "57P02", "57P03", // shut down, crashed, starting up
			"57P05", "25P03", // the connection was idle for too long, outside and inside a transaction
			"53300",          // too many connections
			"40001", "40P01": // serialization, deadlock
			return true
		}
		return strings.HasPrefix(code, "08")
	}
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(*secrets.Error)) {
		return false
	}
	var network net.Error
	return pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)
}

// sqlState returns the server's code for an error, or nothing where it did not
// come from the server.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
