package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/sume/sumetest"
)

// threeColumns is a table as users have it before they adopt the poller.
const threeColumns = `
CREATE TABLE video_jobs (
    job_id text PRIMARY KEY,
    state text NOT NULL DEFAULT 'pending',
    next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
);
CREATE INDEX ON video_jobs (next_poll_at) WHERE state = 'pending'`

func TestAdopted_BesideHeldLockLoop(t *testing.T) {
	t.Parallel()
	s := stageOn(t, pgtest.Empty(t))
	s.slow(5*time.Millisecond, 25*time.Millisecond)
	s.exec(t, threeColumns)
	s.due(t, sumetest.Plan{}, ids("completed", 200)...)
	s.due(t, sumetest.Plan{End: "failed"}, ids("failed", 60)...)
	s.due(t, sumetest.Plan{Reads: 1, Hint: 1}, ids("waits", 60)...)
	s.migrateTwice(t)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		t.Fatal(err)
	}
	loop, ended := &heldLockLoop{conn: conn, api: s.url}, make(chan error, 1)
	go func() { ended <- loop.run(ctx) }()
	s.read(t, 2) // the loop is running
	b := s.sandbox(t, "POLL_BUDGET=20s")
	byPoller := 0
	until(t, "every row to be finished", func() bool {
		sum := b.tick(t)
		byPoller += sum.Finished["completed"] + sum.Finished["failed"]
		return s.number(t, `SELECT count(*) FROM video_jobs WHERE state = 'pending'`) == 0
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the held-lock loop: %v", err)
	}
	s.ended(t, map[string]int{"completed": 260, "failed": 60})
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE state <> CASE WHEN starts_with(job_id, 'failed') THEN 'failed' ELSE 'completed' END`)
	s.zero(t, charged)
	if byPoller == 0 || loop.finished == 0 || byPoller+loop.finished != 320 {
		t.Errorf("%d rows finished by the function and %d by the held-lock loop, want 320 together", byPoller, loop.finished)
	}
}

// migrateTwice runs two built migrators at the same time, and one of them again.
func (s *stage) migrateTwice(t *testing.T) {
	t.Helper()
	bootstrap, err := devstack.Bootstrap(t.Context(), "migrate")
	if err != nil {
		t.Fatal(err)
	}
	migrators := make([]*sandbox, 2)
	answers := make([]func() (devstack.Result, error), 2)
	for i := range migrators {
		f, err := devstack.StartFunction(t.Context(), "migrate", bootstrap, s.environment(nil), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		b := &sandbox{Function: f, secrets: []string{s.database, plantedPassword, plantedKey, plantedAWSKey}}
		t.Cleanup(func() {
			f.Stop()
			b.discreet(t, f.Log())
		})
		migrators[i], answers[i] = b, b.begin(t, "")
	}
	for _, answer := range append(answers, migrators[0].begin(t, "")) {
		got, err := answer()
		var versions struct{ From, To int }
		if err != nil || got.Failure != nil || json.Unmarshal(got.Payload, &versions) != nil || versions.To == 0 {
			t.Fatalf("migrate: %s, failure %v, error %v", got.Payload, got.Failure, err)
		}
	}
	if n := s.number(t, `SELECT count(*) FROM pg_index WHERE indrelid = 'video_jobs'::regclass`); n != 2 {
		t.Errorf("%d indexes on the table, want 2", n)
	}
}

// heldLockLoop is the loop that users have before: it knows three columns, and
// holds the row's lock while it reads.
type heldLockLoop struct {
	conn     *pgx.Conn
	api      string
	finished int
}

// run claims row by row until ctx ends, and closes the connection.
func (l *heldLockLoop) run(ctx context.Context) error {
	defer func() { _ = l.conn.Close(context.WithoutCancel(ctx)) }()
	for ctx.Err() == nil {
		if err := pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error { return l.readOne(ctx, tx) }); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return ctx.Err()
}

func (l *heldLockLoop) readOne(ctx context.Context, tx pgx.Tx) error {
	var id string
	err := tx.QueryRow(ctx, `
SELECT job_id FROM video_jobs WHERE state = 'pending' AND next_poll_at <= now()
ORDER BY next_poll_at LIMIT 1 FOR UPDATE SKIP LOCKED`).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, `SELECT pg_sleep(0.02)`)
		return err
	}
	if err != nil {
		return err
	}
	word, terminal, err := l.status(ctx, id)
	if err != nil {
		return err
	}
	if !terminal {
		_, err = tx.Exec(ctx, `UPDATE video_jobs SET next_poll_at = now() + interval '1 second' WHERE job_id = $1`, id)
		return err
	}
	l.finished++
	_, err = tx.Exec(ctx, `UPDATE video_jobs SET state = $2 WHERE job_id = $1`, id, word)
	return err
}

func (l *heldLockLoop) status(ctx context.Context, id string) (word string, terminal bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.api+"/v1/jobs/"+id+"/status", nil)
	if err != nil {
		return "", false, err
	}
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+plantedKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", false, fmt.Errorf("status %d", response.StatusCode)
	}
	var answer struct {
		Data struct {
			Status   string `json:"sume_status"`
			Terminal bool   `json:"terminal"`
		} `json:"data"`
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Data.Status, answer.Data.Terminal, err
}
