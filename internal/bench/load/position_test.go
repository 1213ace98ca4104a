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

// unfinished answers every read after 20 ms with a job that is not finished. It
// records after how many reads each wanted job was first read.
type unfinished struct {
	mu     sync.Mutex
	reads  int
	warm   chan struct{}  // closed after 500 reads
	wanted map[string]int // 0: not read yet
	found  chan struct{}  // closed when all wanted jobs have been read
}

func (c *unfinished) Status(ctx context.Context, id string) (poller.Answer, error) {
	c.record(id)
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return poller.Answer{}, ctx.Err()
	}
	return poller.Answer{Status: "processing", NextPoll: time.Hour}, nil
}

func (c *unfinished) record(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads++; c.reads == 500 {
		close(c.warm)
	}
	at, ok := c.wanted[id]
	if !ok || at > 0 {
		return
	}
	c.wanted[id] = c.reads
	for _, at := range c.wanted {
		if at == 0 {
			return
		}
	}
	close(c.found)
}

// Each claim of a busy run begins at the due time where the previous one ended.
// Rows that appear before that position must still be found.
func TestRun_RowsBehindClaimPosition(t *testing.T) {
	t.Parallel()
	const others = 20_000
	s := newStage(t, 0)
	s.addDue(t, others)
	var lease poller.LeaseID
	_, _ = rand.Read(lease[:])
	s.exec(t, `INSERT INTO video_jobs (job_id, state, next_poll_at, leased_until, lease_id) VALUES
		('reopened', 'failed', now() - interval '1 day', '-infinity', $1::text::uuid),
		('released', 'pending', now() - interval '1 day', now() + interval '10 minutes', $1::text::uuid),
		('expired', 'pending', now() - interval '1 day', now() + interval '4 seconds', $1::text::uuid)`, hex.EncodeToString(lease[:]))
	api := &unfinished{
		warm: make(chan struct{}), found: make(chan struct{}),
		wanted: map[string]int{"inserted in the past": 0, "reopened": 0, "released": 0, "expired": 0},
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
	for _, id := range slices.Sorted(maps.Keys(api.wanted)) {
		if reads := api.wanted[id]; reads >= others {
			t.Errorf("%s was read after %d reads, when nothing else was left to read", id, reads)
		} else {
			t.Logf("%s: after %d reads", id, reads)
		}
	}
}

// await waits until done is closed, while the run goes on.
func await(t *testing.T, done <-chan struct{}, ended <-chan error, limit time.Duration) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case err := <-ended:
		t.Fatalf("the run ended early: %v", err)
	case <-timer.C:
		t.Fatalf("nothing after %v", limit)
	}
}
