package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// buyer buys jobs as a user's program would: through the submit function.
type buyer struct {
	function *devstack.Function
	key      string
	api      *sumetest.API
	life     time.Duration
	ends     map[string]string // by job id: the state that it has to reach
}

// buy buys n jobs, one after the other, evenly over a time. ends may be read
// when it has returned.
func (b *buyer) buy(ctx context.Context, n int, over time.Duration) error {
	ticker := time.NewTicker(max(over/time.Duration(n), time.Millisecond))
	defer ticker.Stop()
	for i := range n {
		if err := b.buyOne(ctx, i); err != nil {
			return fmt.Errorf("buy job %d: %w", i+1, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *buyer) buyOne(ctx context.Context, i int) error {
	order := fmt.Appendf(nil, `{"idempotency_key": "run-%d", "video": {"prompt": "a lighthouse, take %[1]d", "duration": 5}}`, i+1)
	plan := b.plan(i)
	b.api.SetOptions(apiOptions(b.key, uint64(i), plan))
	result, err := b.function.Invoke(ctx, order)
	if err != nil {
		return err
	}
	if result.Failure != nil {
		return result.Failure
	}
	var answer struct {
		JobID string `json:"job_id"`
	}
	if err := json.Unmarshal(result.Payload, &answer); err != nil || answer.JobID == "" {
		return fmt.Errorf("answer %s names no job", result.Payload)
	}
	b.ends[answer.JobID] = plan.End
	return nil
}

// plan decides what happens to a job; most are completed.
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
		After: b.life/6 + rand.N(b.life-b.life/6),
		Hint:  1 + float64(rand.IntN(5))/2,
		Flat:  i%2 == 1,
	}
}
