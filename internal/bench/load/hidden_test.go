package load_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/bench/load"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// crowd answers every read as unfinished after a moment, and notes after how
// many reads the jobs looked for were first read.
type crowd struct {
	mu     sync.Mutex
	reads  int
	warm   chan struct{} // closed after some hundred reads
	looked map[string]int
	found  chan struct{} // closed when all of them were read
}

func (c *crowd) Status(ctx context.Context, id string) (poller.Answer, error) {
	c.note(id)
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return poller.Answer{}, ctx.Err()
	}
	return poller.Answer{Status: "processing", NextPoll: time.Hour}, nil
}

func (c *crowd) note(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads++; c.reads == 500 {
		close(c.warm)
	}
	at, mine := c.looked[id]
	if !mine || at > 0 {
		return
	}
	c.looked[id] = c.reads
	for _, at := range c.looked {
		if at == 0 {
			return
		}
	}
	close(c.found)
}

// The claims of a busy run begin where the one before ended. Rows that come to
// lie below that are found all the same.
func TestNoRowHidesBelowWhereTheClaimsOfABusyRunBegin(t *testing.T) {
	t.Parallel()
	const others = 20_000
	s := newStage(t, 0)
	s.due(t, others)
	var lease poller.LeaseID
	_, _ = rand.Read(lease[:])
	s.exec(t, `INSERT INTO video_jobs (job_id, state, next_poll_at, leased_until, lease_id) VALUES
		('reopened', 'failed', now() - interval '1 day', '-infinity', $1::text::uuid),
		('released', 'pending', now() - interval '1 day', now() + interval '10 minutes', $1::text::uuid),
		('run out', 'pending', now() - interval '1 day', now() + interval '4 seconds', $1::text::uuid)`, hex.EncodeToString(lease[:]))
	api := &crowd{
		warm: make(chan struct{}), found: make(chan struct{}),
		looked: map[string]int{"inserted in the past": 0, "reopened": 0, "released": 0, "run out": 0},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	settings := load.Settings(load.Spec{Concurrency: 32, Budget: time.Minute})
	p := poller.New(settings, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx, jobs.New(s.pool), api, time.Now(), poller.NewSummary("", poller.ModeScheduled))
		ended <- err
	}()
	await(t, api.warm, ended, time.Minute)
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('inserted in the past', now() - interval '2 days')`)
	s.exec(t, `UPDATE video_jobs SET state = 'pending' WHERE job_id = 'reopened'`)
	other := jobs.New(s.pool)
	if out, err := other.Release(t.Context(), "", []poller.Release{{JobID: "released", Lease: lease, Unread: true}}); err != nil || out[0].Outcome != poller.Written {
		t.Fatalf("release: %v, %v", out, err)
	}
	await(t, api.found, ended, time.Minute)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, id := range slices.Sorted(maps.Keys(api.looked)) {
		if reads := api.looked[id]; reads >= others {
			t.Errorf("the row %s was read after %d reads, with nothing else left to read", id, reads)
		} else {
			t.Logf("%s: after %d reads", id, reads)
		}
	}
}

// await waits for what has to come while the run goes on.
func await(t *testing.T, what <-chan struct{}, ended <-chan error, most time.Duration) {
	t.Helper()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-what:
	case err := <-ended:
		t.Fatalf("the run ended early: %v", err)
	case <-timer.C:
		t.Fatalf("nothing after %v", most)
	}
}
