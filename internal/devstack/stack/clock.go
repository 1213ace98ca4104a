package stack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sumepoller/internal/devstack"
)

// failuresInRow is how many ticks in a row may fail before the run gives up.
const failuresInRow = 5

// tickEvent is what EventBridge Scheduler sends.
const tickEvent = `{"version":"0","id":"%s","detail-type":"Scheduled Event","source":"aws.scheduler",` +
	`"account":"012345678912","time":"%s","region":"us-east-1","resources":[],"detail":"{}"}`

// clock invokes the poller on a schedule, each tick in a sandbox that is free.
type clock struct {
	free    chan *devstack.Function
	halt    context.CancelFunc // ends the ticking; nil before the first start
	abandon context.CancelFunc // ends the runs too
	running sync.WaitGroup

	mu     sync.Mutex
	counts counts
}

// counts is what came of the ticks.
type counts struct {
	ticks, skipped, failed, overlapped int
	running, inRow                     int
	failure                            error // of the last tick that failed
}

func newClock(pollers []*devstack.Function) *clock {
	c := &clock{free: make(chan *devstack.Function, len(pollers))}
	for _, f := range pollers {
		c.free <- f
	}
	return c
}

// start makes it tick, the first time at once. It must stand still.
func (c *clock) start() {
	ticks, halt := context.WithCancel(context.Background())
	runs, abandon := context.WithCancel(context.Background())
	c.halt, c.abandon = halt, abandon
	c.running.Go(func() {
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			c.tick(runs)
			select {
			case <-ticker.C:
			case <-ticks.Done():
				return
			}
		}
	})
}

// rest ends the ticking and waits for the runs that go on to end by
// themselves, or for ctx.
func (c *clock) rest(ctx context.Context) {
	c.halt()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	c.stop()
	<-ended
}

// stop ends the ticking and abandons the runs that go on.
func (c *clock) stop() {
	if c.halt == nil {
		return
	}
	c.halt()
	c.abandon()
	c.running.Wait()
}

func (c *clock) tick(ctx context.Context) {
	select {
	case f := <-c.free:
		c.began()
		c.running.Go(func() {
			c.ended(invoke(ctx, f))
			c.free <- f
		})
	default:
		c.mu.Lock()
		c.counts.skipped++
		c.mu.Unlock()
	}
}

func (c *clock) began() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.ticks++
	if c.counts.running > 0 {
		c.counts.overlapped++
	}
	c.counts.running++
}

func (c *clock) ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.running--
	if err != nil {
		c.counts.failed++
		c.counts.inRow++
		c.counts.failure = err
		return
	}
	c.counts.inRow = 0
}

// sum returns what came of the ticks so far.
func (c *clock) sum() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// trouble returns an error once too many ticks in a row have failed.
func (c *clock) trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.inRow < failuresInRow {
		return nil
	}
	return fmt.Errorf("%d ticks in a row failed, the last one with: %w", c.counts.inRow, c.counts.failure)
}

func invoke(ctx context.Context, f *devstack.Function) error {
	at := time.Now().UTC().Format(time.RFC3339)
	result, err := f.Invoke(ctx, fmt.Appendf(nil, tickEvent, at, at))
	if err == nil && result.Failure != nil {
		err = result.Failure
	}
	return err
}
