package postgres

import (
	"context"
	"time"
)

// How long a statement is repeated after its connection failed.
const (
	retryFor        = 5 * time.Second
	firstRetryPause = 50 * time.Millisecond // each further one is twice as long
	maxRetryPause   = time.Second
)

// Retry repeats do while its connection fails, until ctx ends or some seconds
// have passed. A refused login is tried once more, with a password that is
// fetched again. do must be safe to repeat.
func Retry(ctx context.Context, do func() error) error {
	started, renewed := time.Now(), false
	for pause := firstRetryPause; ; pause = min(2*pause, maxRetryPause) {
		err := do()
		if err == nil || ctx.Err() != nil || time.Since(started)+pause > retryFor {
			return Explain(err)
		}
		switch {
		case Transient(err):
		case refusedLogin(err) && !renewed:
			renewed = true
		default:
			return Explain(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
