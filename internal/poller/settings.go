package poller

import "time"

// Settings are the rules' numbers, as the environment gives them.
type Settings struct {
	Budget          time.Duration // nothing is claimed later than this after the run began
	Concurrency     int           // reads in flight at most
	Lease           time.Duration // exceeds RequestTimeout
	RequestTimeout  time.Duration // of one read
	DefaultInterval time.Duration // until the next read, where the answer names none
	MinInterval     time.Duration // bounds on the interval that an answer names
	MaxInterval     time.Duration
	BackoffMax      time.Duration // ceiling of the back-off
	ReadsPerMinute  int           // of one sandbox; 0: no limit of one's own
	ReadsPerDay     int           // of all runs together; 0: no limit of one's own
}

const (
	// reserveMax bounds the part of a function's time that is kept for
	// settling, counting and answering.
	reserveMax = 3 * time.Second

	// A batch of settlements is written when it is this large or this old.
	batchSize = 192
	batchAge  = 40 * time.Millisecond
	// batchBytes bounds the terminal answers of a batch that has more than
	// one, so that it is written well within a write's time.
	batchBytes = 2 << 20
	// Nothing is claimed while terminal answers of this size wait to be
	// written: they stand in memory, and their leases age.
	unwrittenMax = 8 << 20
	// batchesInFlight keeps the writer busy while the next batch fills.
	batchesInFlight = 2

	// A claim waits until this many slots are free (a quarter of them, where
	// there are fewer than four times as many) or one has been for claimAge.
	// A claim that counts its reads is two statements: this many rows keep them
	// below a tenth of a statement a read, with the settle's share.
	claimSlots = 24
	claimAge   = 12 * time.Millisecond

	// lookEvery bounds how long rows that came meanwhile stay unseen.
	lookEvery = 10 * time.Second
	// barrenMax bounds the pause between claims that come back empty although
	// something is due: rows that another program holds.
	barrenMax = time.Second
	// againPause lies between two attempts to settle a row that is held, and
	// againTime is what the pause and an attempt can take.
	againPause = 100 * time.Millisecond
	againTime  = time.Second

	// downStreak failures in a row, of the kind that a dead API causes, end
	// the run.
	downStreak = 20
	// suspectsMax rows refused with 403 before any other answer, or with 401 in a row,
	// mean the key and not the rows.
	suspectsMax = 5
)

// Reserve returns the time a function with this limit keeps back from reading:
// the lesser of 3 s and a fifth of the limit.
func Reserve(limit time.Duration) time.Duration {
	return min(reserveMax, max(limit, 0)/5)
}

// slotsWanted is how many free slots are worth a claim by themselves.
func (s Settings) slotsWanted() int {
	return max(1, min(claimSlots, s.Concurrency/4))
}
