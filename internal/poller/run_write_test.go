package poller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
)

// heavy is a slow table with an API whose answers are a mebibyte each.
type heavy struct {
	*fakeTable
	mu            sync.Mutex
	body          []byte
	waiting, most int // answers that came and are not settled
	batch         int // the largest
}

func (h *heavy) Status(context.Context, string) (poller.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting++
	h.most = max(h.most, h.waiting)
	return poller.Answer{Terminal: true, Status: "completed", Body: h.body}, nil
}

func (h *heavy) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	<-time.After(500 * time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting -= len(batch)
	h.batch = max(h.batch, len(batch))
	return h.fakeTable.Settle(ctx, batch)
}

func TestSettle_LargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heavy{fakeTable: newTable(), body: make([]byte, 1<<20)}
		for i := range 300 {
			h.Add(fmt.Sprintf("job_%03d", i), 0)
		}
		s := defaults()
		s.Budget = 80 * time.Second
		sum := mustPass(t, poller.New(s, quiet()), h, h)
		if sum.Finished["completed"] != 300 || sum.LostLeases > 0 || sum.Stopped != poller.StoppedDrained {
			t.Errorf("summary %+v", sum)
		}
		if h.batch > 2 || h.most > 64+8 {
			t.Errorf("%d answers in a batch, %d waited to be written; want at most 2, and 72", h.batch, h.most)
		}
	})
}
