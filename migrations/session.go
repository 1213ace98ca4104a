package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// lockTimeout limits each wait for a lock on a table, and so the time that
	// other programs queue behind it: less than 3 s together with the change and
	// the trial of writes (trialLimit).
	lockTimeout = 2 * time.Second
	// lockPause is the least pause between two such waits, in which other programs
	// go on. The pause is at most twice as long, at random.
	lockPause = 300 * time.Millisecond
	// turnPause is the pause between two checks whether another migrator is done.
	turnPause = 100 * time.Millisecond
	// migratorKey is the advisory lock of migrators: "video" in ASCII.
	migratorKey int64 = 0x766964656f
)

// SQLSTATEs after which a retry helps.
const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// open returns the connections of one migration. found collects the warnings of
// their statements. The server closes a connection that does not answer for a
// minute, which frees its advisory lock.
func open(config *pgxpool.Config, found *findings) *sql.DB {
	session := fmt.Sprintf(`SET lock_timeout = %d; SET idle_in_transaction_session_timeout = '1min';
SET statement_timeout = 0; SET client_min_messages = warning; SET client_encoding = 'UTF8';
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3`, lockTimeout.Milliseconds())
	options := []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.PgConn().Exec(ctx, session).ReadAll()
		return err
	})}
	if config.BeforeConnect != nil {
		options = append(options, stdlib.OptionBeforeConnect(config.BeforeConnect))
	}
	connConfig := config.ConnConfig.Copy()
	connConfig.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { found.notice(notice) }
	return stdlib.OpenDB(*connConfig, options...)
}

// lock waits until no other migrator is running. It polls: a session that waits in
// the server holds a snapshot, and the other's CREATE INDEX CONCURRENTLY would wait
// for that snapshot.
func lock(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for {
		var mine bool
		err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, migratorKey).Scan(&mine)
		if err == nil && mine {
			return func() { release(conn) }, nil
		}
		if err == nil {
			if err = pause(ctx, turnPause); err != nil {
				err = fmt.Errorf("another migration did not finish in time: migrate again: %w", err)
			}
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
}

// release closes the migrator's session, which frees its lock, even if ctx has
// ended.
func release(conn *sql.Conn) {
	_ = conn.Raw(func(driver any) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return driver.(*stdlib.Conn).Conn().Close(ctx)
	})
	_ = conn.Close()
}

// retry repeats f as long as other programs hold locks, until ctx ends.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != lockNotAvailable && pgErr.Code != deadlockDetected {
			return err
		}
		if ended := pause(ctx, lockPause+rand.N(lockPause)); ended != nil {
			return fmt.Errorf("other programs hold locks on video_jobs all the time: pause them for a few seconds, or migrate again: %w", ended)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// plain reduces err to one line. An error of the server becomes its message, with
// the SQLSTATE unless the message is from this package.
func plain(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return &oneLine{line: strings.Join(strings.Fields(err.Error()), " "), cause: err}
	}
	line := strings.ReplaceAll(pgErr.Message, "\n", " ")
	if pgErr.Code != "P0001" {
		line += " (SQLSTATE " + pgErr.Code + ")"
	}
	return &oneLine{line: line, cause: err}
}

// oneLine is an error of one line that unwraps to its cause.
type oneLine struct {
	line  string
	cause error
}

func (e *oneLine) Error() string { return e.line }
func (e *oneLine) Unwrap() error { return e.cause }
