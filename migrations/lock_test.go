package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/migrations"
)

// breakIndex leaves an invalid due index behind, as an interrupted build does.
func breakIndex(t *testing.T, config *pgx.ConnConfig) {
	t.Helper()
	holder, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(t.Context()) }()
	builder, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = builder.Close(t.Context()) }()
	if _, err := holder.Exec(t.Context(), `BEGIN`); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `UPDATE video_jobs SET state = state WHERE job_id = 'job_1'`); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Exec(t.Context(), `SET statement_timeout = '300ms'`); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Exec(t.Context(), `CREATE INDEX CONCURRENTLY video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending'`); err == nil {
		t.Fatal("the index was built in spite of an open transaction")
	}
}

// program writes to video_jobs as a user's program does, and measures its slowest
// statement.
type program struct {
	slowest atomic.Int64
}

func (p *program) statement(ctx context.Context, conn *pgx.Conn, sql string, sleeps time.Duration) error {
	start := time.Now()
	_, err := conn.Exec(ctx, sql)
	took := int64(time.Since(start) - sleeps)
	for old := p.slowest.Load(); took > old && !p.slowest.CompareAndSwap(old, took); old = p.slowest.Load() {
	}
	return err
}

// hold locks a row again and again, each time for so long.
func (p *program) hold(ctx context.Context, conn *pgx.Conn, each time.Duration, held chan<- struct{}) error {
	sleep := fmt.Sprintf(`SELECT pg_sleep(%g)`, each.Seconds())
	for ctx.Err() == nil {
		if err := p.statement(ctx, conn, `BEGIN`, 0); err != nil {
			return err
		}
		if err := p.statement(ctx, conn, `SELECT FROM video_jobs WHERE job_id = 'job_1' FOR UPDATE`, 0); err != nil {
			return err
		}
		select {
		case held <- struct{}{}:
		default:
		}
		if err := p.statement(ctx, conn, sleep, each); err != nil {
			return err
		}
		if err := p.statement(ctx, conn, `UPDATE video_jobs SET next_poll_at = now() WHERE job_id = 'job_1'; COMMIT`, 0); err != nil {
			return err
		}
	}
	return nil
}

// write makes short writes, one after another.
func (p *program) write(ctx context.Context, conn *pgx.Conn) error {
	for ctx.Err() == nil {
		if err := p.statement(ctx, conn, `UPDATE video_jobs SET next_poll_at = now() WHERE job_id = 'job_2'; SELECT pg_sleep(0.01)`, 0); err != nil {
			return err
		}
	}
	return nil
}

func TestUp_LockedRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup string
		each  time.Duration
	}{
		"the index is there": {threeColumns, 10 * time.Second},
		"no index":           {threeColumns + `DROP INDEX their_due_idx`, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, c.setup)
			config := pool.Config().ConnConfig.Copy()
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var theirs program
			var all sync.WaitGroup
			held := make(chan struct{}, 1)
			work := func(f func(*pgx.Conn) error) {
				all.Go(func() {
					conn, err := pgx.ConnectConfig(t.Context(), config.Copy())
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
					if err := f(conn); err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("the other program: %v", err)
					}
				})
			}
			work(func(conn *pgx.Conn) error { return theirs.hold(ctx, conn, c.each, held) })
			work(func(conn *pgx.Conn) error { return theirs.write(ctx, conn) })
			<-held
			mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
			stop()
			all.Wait()
			// A statement that queued behind the migration would wait for the row's holder.
			if got := time.Duration(theirs.slowest.Load()); got > c.each-time.Second {
				t.Errorf("the slowest statement of the other program took %v beside rows locked for %v", got, c.each)
			}
		})
	}
}

func TestUp_Deadline(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM video_jobs FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = migrations.Up(ctx, pool.Config())
	if err == nil || strings.Contains(err.Error(), "\n") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want one line that the time is over", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
}
