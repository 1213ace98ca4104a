package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// buyer buys jobs as a program of a user's would: through the submitting
// function, which records them for the poller.
type buyer struct {
	function *devstack.Function
	key      string
	api      *sumetest.API
	life     time.Duration
	ends     map[string]string // by job id: the state it has to reach
	random   *rand.Rand
}

func (s *stack) newBuyer(ctx context.Context) (*buyer, error) {
	f, err := s.function(ctx, "submit", nil)
	if err != nil {
		return nil, err
	}
	seed := uint64(time.Now().UnixNano())
	return &buyer{
		function: f, key: s.key, api: s.api, life: s.Life,
		ends: map[string]string{}, random: rand.New(rand.NewPCG(seed, 0)),
	}, nil
}

// buy buys n jobs, one after the other, spread over a time. Its caller reads
// ends when it has returned.
func (b *buyer) buy(ctx context.Context, n int, over time.Duration) error {
	pace := time.NewTicker(max(over/time.Duration(n), time.Millisecond))
	defer pace.Stop()
	for i := range n {
		if err := b.buyOne(ctx, i); err != nil {
			return fmt.Errorf("buy job %d: %w", i+1, err)
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *buyer) buyOne(ctx context.Context, i int) error {
	request, err := json.Marshal(map[string]any{
		"idempotency_key": fmt.Sprintf("run-%d", i+1),
		"video":           map[string]any{"prompt": fmt.Sprintf("a lighthouse, take %d", i+1), "duration": 5},
	})
	if err != nil {
		return err
	}
	plan := b.plan(i)
	b.api.SetOptions(apiOptions(b.key, uint64(i), plan))
	result, err := b.function.Invoke(ctx, request)
	if err != nil {
		return err
	}
	if result.Failure != nil {
		return result.Failure
	}
	var answer struct {
		JobID string `json:"job_id"`
	}
	if err := json.NewDecoder(bytes.NewReader(result.Payload)).Decode(&answer); err != nil || answer.JobID == "" {
		return fmt.Errorf("answer %s names no job", result.Payload)
	}
	b.ends[answer.JobID] = plan.End
	return nil
}

// plan draws how a job goes; most come to a good end.
func (b *buyer) plan(i int) sumetest.Plan {
	end := "completed"
	switch i % 20 {
	case 3, 9, 15:
		end = "failed"
	case 6, 13:
		end = "canceled"
	case 18:
		end = "expired"
	}
	return sumetest.Plan{
		End:   end,
		After: b.life/6 + time.Duration(b.random.Int64N(int64(b.life-b.life/6))),
		Hint:  1 + float64(b.random.IntN(5))/2,
		Flat:  i%2 == 1,
	}
}
