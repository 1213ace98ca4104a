package poller

import "time"

// Settings are the numbers that the rules use. They come from the environment.
type Settings struct {
	Budget          time.Duration // nothing is claimed later than this after the run began
	Concurrency     int           // reads in flight at most
	Lease           time.Duration // exceeds RequestTimeout
	RequestTimeout  time.Duration // of one read
	DefaultInterval time.Duration // until the next read, where the answer names none
	MinInterval     time.Duration // bounds on the interval that an answer names
	MaxInterval     time.Duration
	BackoffMax      time.Duration // longest back-off
	ReadsPerMinute  int           // of one sandbox; 0: no limit
	ReadsPerDay     int           // of all runs together; 0: no limit
}

const (
	// A batch of settlements is written when it is this large or this old.
	batchSize = 192
	batchAge  = 40 * time.Millisecond
	// batchBytes limits the terminal answers of a batch that has more than one,
	// so that it is written well within the time for a write.
	batchBytes = 2 << 20
	// Nothing is claimed while terminal answers of this size together wait to
	// be written: they use memory, and their leases may expire.
	unwrittenMax = 8 << 20
	// At most batchesInFlight batches are written at the same time. Meanwhile
	// the next one gets larger.
	batchesInFlight = 2

	// A claim waits until slotsWanted slots are free, or until one has been free
	// for claimAge.
	claimAge = 12 * time.Millisecond
	// emptyClaimsMax is the longest pause between claims that return no row
	// although one is due: another program holds it.
	emptyClaimsMax = time.Second
	// retryPause is the pause before a locked row is tried again. retryTime is
	// what the pause and the attempt can take.
	retryPause = 100 * time.Millisecond
	retryTime  = time.Second
)
