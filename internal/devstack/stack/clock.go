package stack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sumepoller/internal/devstack"
)

// maxFailedTicks is the number of ticks in a row that fail before make run
// gives up.
const maxFailedTicks = 5

// tickEvent is what EventBridge Scheduler sends.
const tickEvent = `{"version":"0","id":"%s","detail-type":"Scheduled Event","source":"aws.scheduler",` +
	`"account":"012345678912","time":"%s","region":"us-east-1","resources":[],"detail":"{}"}`

// clock invokes the poller on a schedule, each tick in a free sandbox.
type clock struct {
	free    chan *devstack.Function
	halt    context.CancelFunc // ends the ticks, not the runs; nil before the first start
	running sync.WaitGroup     // the ticks and the runs

	mu     sync.Mutex
	counts tickCounts
}

type tickCounts struct {
	ticks, skipped, failed, overlapped int
	inFlight, failedInRow              int
	lastError                          error
}

// start begins with a tick. The clock must not be ticking.
func (c *clock) start() {
	ctx, halt := context.WithCancel(context.Background())
	c.halt = halt
	c.running.Go(func() {
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			c.tick()
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// stop ends the ticks.
func (c *clock) stop() {
	if c.halt != nil {
		c.halt()
	}
}

// rest ends the ticks and waits for the runs in flight, or for ctx.
func (c *clock) rest(ctx context.Context) {
	c.stop()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case f := <-c.free:
		c.counts.ticks++
		if c.counts.inFlight > 0 {
			c.counts.overlapped++
		}
		c.counts.inFlight++
		c.running.Go(func() { c.run(f) })
	default:
		c.counts.skipped++
	}
}

// run ends with the function's answer, or when the function is stopped.
func (c *clock) run(f *devstack.Function) {
	at := time.Now().UTC().Format(time.RFC3339)
	result, err := f.Invoke(context.Background(), fmt.Appendf(nil, tickEvent, at, at))
	if err == nil && result.Failure != nil {
		err = result.Failure
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.inFlight--
	c.counts.failedInRow++
	if err == nil {
		c.counts.failedInRow = 0
	} else {
		c.counts.failed++
		c.counts.lastError = err
	}
	c.free <- f
}

// sum returns the counts so far, and an error once too many ticks in a row
// have failed.
func (c *clock) sum() (tickCounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.failedInRow < maxFailedTicks {
		return c.counts, nil
	}
	return c.counts, fmt.Errorf("%d ticks in a row failed, the last one with: %w", c.counts.failedInRow, c.counts.lastError)
}
