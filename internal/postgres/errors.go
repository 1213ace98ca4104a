package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/secrets"
)

// LockTimeout is the SQLSTATE of a statement that waited longer than
// lock_timeout.
const LockTimeout = "55P03"

// SQLState returns the server's code for an error. It is empty where the error
// did not come from the server.
func SQLState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Transient reports whether a statement failed with its connection, or lost to
// another transaction: the same statement can succeed soon after. A canceled
// statement (57014, which a statement_timeout causes too) and a dropped database
// (57P04) are not transient.
func Transient(err error) bool {
	if code := SQLState(err); code != "" {
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

// Refused reports whether the server rejected what a statement writes, because
// of a constraint, a trigger, a rule or a value. Every error of the server
// counts, except those of the infrastructure's classes.
func Refused(err error) bool {
	code := SQLState(err)
	if len(code) != 5 {
		return false
	}
	switch code {
	case "40001", "40P01", LockTimeout,
		"42P05": // a prepared statement of the driver or a pooler exists already
		return false
	}
	switch code[:2] {
	case "08", "25", "26", "28", "53", "57", "58", "72", "XX":
		return false
	}
	return true
}

// MaybeOneRow reports whether one row may be the cause of an error that looks
// like one of the infrastructure: the row's trigger may raise it, or wait for a
// lock. After such an error the connection is still open.
func MaybeOneRow(err error) bool {
	code := SQLState(err)
	switch code {
	case "40001", "40P01", LockTimeout, "57014":
		return true
	case "53300":
		return false
	}
	return len(code) == 5 && (code[:2] == "53" || code[:2] == "58" || code[:2] == "XX")
}

var functionContext = regexp.MustCompile(`(?m)^[\w/]+ function ([\w."$]{1,128})\(`)

// TriggerFunction returns the function that raised an error, from the error's
// context. The context holds names and positions, never a row's values.
func TriggerFunction(err *pgconn.PgError) string {
	if found := functionContext.FindStringSubmatch(err.Where); found != nil {
		return found[1]
	}
	return ""
}

// Explain adds the cure to an error that would occur again.
func Explain(err error) error {
	if SQLState(err) == "25006" {
		return fmt.Errorf("the database takes no writes here: connect to its writer, not to a replica, and leave default_transaction_read_only off: %w", err)
	}
	return err
}

// refusedLogin reports whether the server refused the login.
func refusedLogin(err error) bool {
	code := SQLState(err)
	return code == "28P01" || code == "28000"
}
