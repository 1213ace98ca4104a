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

// threeColumns is the table as users have it, with the rows of their jobs.
const threeColumns = `
CREATE TABLE video_jobs (
    job_id text PRIMARY KEY,
    state text NOT NULL DEFAULT 'pending',
    next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
);
CREATE INDEX ON video_jobs (next_poll_at) WHERE state = 'pending'`

func TestAdoptedTableIsFollowedBesideAHeldLockLoop(t *testing.T) {
	t.Parallel()
	s := stageOn(t, pgtest.Empty(t))
	s.slow(5*time.Millisecond, 25*time.Millisecond)
	s.exec(t, threeColumns)
	s.due(t, sumetest.Plan{}, ids("completed", 200)...)
	s.due(t, sumetest.Plan{End: "failed"}, ids("failed", 60)...)
	s.due(t, sumetest.Plan{Reads: 1, Hint: 1}, ids("waits", 60)...)
	s.migratedByTwo(t)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		t.Fatal(err)
	}
	older, ended := &olderLoop{conn: conn, api: s.url}, make(chan error, 1)
	go func() { ended <- older.run(ctx) }()
	s.read(t, 2) // the older one is at work
	b := s.sandbox(t, "POLL_BUDGET=20s")
	ours := 0
	until(t, "every row to end", func() bool {
		sum := b.tick(t)
		ours += sum.Finished["completed"] + sum.Finished["failed"]
		return s.number(t, `SELECT count(*) FROM video_jobs WHERE state = 'pending'`) == 0
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the older loop: %v", err)
	}
	s.ended(t, map[string]int{"completed": 260, "failed": 60})
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE state <> CASE WHEN starts_with(job_id, 'failed') THEN 'failed' ELSE 'completed' END`)
	s.zero(t, charged)
	if ours == 0 || older.finished == 0 || ours+older.finished != 320 {
		t.Errorf("%d rows ended by the function and %d by the older loop, want all 320 by the two", ours, older.finished)
	}
}

// migratedByTwo has two built migrators at work at once, and one once more.
func (s *stage) migratedByTwo(t *testing.T) {
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

// olderLoop is the loop that users come from: it knows three columns, and holds
// the row's lock for as long as it reads.
type olderLoop struct {
	conn     *pgx.Conn
	api      string
	finished int
}

// run claims row by row until ctx ends, and closes the connection.
func (o *olderLoop) run(ctx context.Context) error {
	defer func() { _ = o.conn.Close(context.WithoutCancel(ctx)) }()
	for ctx.Err() == nil {
		if err := pgx.BeginFunc(ctx, o.conn, func(tx pgx.Tx) error { return o.one(ctx, tx) }); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return ctx.Err()
}

func (o *olderLoop) one(ctx context.Context, tx pgx.Tx) error {
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
	word, terminal, err := o.status(ctx, id)
	if err != nil {
		return err
	}
	if !terminal {
		_, err = tx.Exec(ctx, `UPDATE video_jobs SET next_poll_at = now() + interval '1 second' WHERE job_id = $1`, id)
		return err
	}
	o.finished++
	_, err = tx.Exec(ctx, `UPDATE video_jobs SET state = $2 WHERE job_id = $1`, id, word)
	return err
}

func (o *olderLoop) status(ctx context.Context, id string) (word string, terminal bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.api+"/v1/jobs/"+id+"/status", nil)
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
