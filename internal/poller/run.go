package poller

import (
	"context"
	"log/slog"
	"time"
)

// Table is what a run needs of the database.
type Table interface {
	Queue
	Schedule
}

// Poller runs passes over the table. A warm sandbox keeps one, since it
// remembers what the API's limits left. One run at a time.
type Poller struct {
	settings Settings
	log      *slog.Logger
	meter    meter
	ledger   ledger
}

// New returns a Poller with these settings.
func New(s Settings, log *slog.Logger) *Poller {
	return &Poller{
		settings: s,
		log:      log,
		meter:    meter{perMinute: s.ReadsPerMinute},
		ledger:   ledger{limit: s.ReadsPerDay},
	}
}

// Run claims, reads and settles until nothing is due or the time is up. The
// budget, the reserve and elapsed_seconds count from started, when the
// invocation began; ctx's deadline is the function's. The summary holds in
// every case; an error is a *Failure.
func (p *Poller) Run(ctx context.Context, table Table, api Reader, started time.Time, sum Summary) (Summary, error) {
	r := p.newRun(ctx, table, api, started, sum)
	defer r.cancel()
	r.loop()
	r.backlog()
	if r.stopped == StoppedDrained && r.sum.DueRemaining > 0 {
		r.stopped = StoppedBudget // due, and this run cannot claim it
	}
	r.sum.Stopped = r.stopped
	r.sum.ElapsedSeconds = seconds(time.Since(started))
	if r.failure == nil {
		return r.sum, nil
	}
	return r.sum, r.failure
}

// run is one pass. One goroutine, the one that calls loop, owns every field;
// the goroutines that read and write send it what they did as functions.
type run struct {
	*Poller
	table Table
	api   Reader
	sum   Summary

	ctx       context.Context    // of the invocation
	readCtx   context.Context    // of the reads; cancelled at hardEnd
	cancel    context.CancelFunc // cancels readCtx
	closing   time.Time          // end of the last settle; zero: none
	budgetEnd time.Time          // nothing is claimed after
	hardEnd   time.Time          // no read lasts longer; zero: none
	events    chan func()

	stopped string
	failure *RunError

	inFlight  int
	freeSince time.Time // when the first slot came free after the last claim
	leases    map[LeaseID]*lease
	seeking   bool // a claim or a look is under way

	dueAt    time.Time // nothing is known to be due before
	lookBy   time.Time // look by then all the same
	mustLook bool      // the last claim came back short
	lookedAt time.Time // when the last look began
	wroteAt  time.Time // when the last write of ours ended
	soonest  time.Time // earliest due time of rows settled since; zero: none
	barren   int       // claims in a row that brought nothing
	overdue  bool      // the last look saw a due row that no claim gets

	pending int // pending jobs, for the stretch; -1: not counted yet

	batch        []Settlement
	batchSince   time.Time
	unwritten    int // bytes of terminal answers in batch and in the settles under way
	writing      int // settles under way
	releases     []Release
	releaseSince time.Time
	releasing    bool
	unannounced  bool // the server had no room for a notification

	guard guard
	aged  bool // an answer was found to come from a cache
}

// lease is a claim with rows not yet settled or released.
type lease struct {
	id   LeaseID
	end  time.Time // monotonic, from before the claim was sent
	date string    // the UTC date whose count its reads were taken from
	rows int
}

// read is a read that is over.
type read struct {
	job    Job
	lease  *lease
	answer Answer
	fault  *ReadError
	began  time.Time
	ended  time.Time
}

func (p *Poller) newRun(ctx context.Context, table Table, api Reader, started time.Time, sum Summary) *run {
	p.meter.start()
	if sum.Mode != ModeScheduled {
		p.meter.forget() // an operator's way to end a long wait
	}
	p.ledger.start()
	r := &run{
		Poller: p, table: table, api: api, sum: sum, ctx: ctx,
		budgetEnd: started.Add(p.settings.Budget),
		events:    make(chan func(), 2*p.settings.Concurrency+16),
		leases:    map[LeaseID]*lease{},
		pending:   -1,
	}
	r.readCtx, r.cancel = context.WithCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		reserve := Reserve(deadline.Sub(started))
		r.hardEnd = deadline.Add(-reserve)
		r.closing = deadline.Add(-reserve / 4)
		if r.hardEnd.Before(r.budgetEnd) {
			r.budgetEnd = r.hardEnd
		}
	}
	return r
}
