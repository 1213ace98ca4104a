package main

import (
	"context"
	"fmt"
	"time"

	"sumepoller/internal/bench/cgroup"
	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/report"
	"sumepoller/internal/sume/sumetest"
)

// answer is a finished job's, 240 bytes with the id of a row.
const answer = `{"data":{"job_id":"{id}","status":"COMPLETED","sume_status":"completed","terminal":true,"result_ready":true,` +
	`"next_action":"fetch_result","job":{"id":"{id}","type":"video_generation","status":"completed"}},"request_id":"req_0123456789"}`

// world is what a load works on: a database server and an API.
type world struct {
	db  *database.Server
	api *child
	url string // of the API
}

// newWorld starts both. Stop it in every case.
func newWorld(ctx context.Context, s *report.Section) (*world, error) {
	w := &world{}
	var err error
	if w.db, err = database.Start(ctx); err != nil {
		return nil, err
	}
	if s.Machine.Postgres, err = w.db.Version(ctx); err != nil {
		w.stop()
		return nil, err
	}
	if w.api, err = spawn(roleAPI, nil); err == nil {
		err = w.api.hear(&w.url)
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	s.Note("PostgreSQL with %v; the API, the load and the server are processes of their own on the one machine", database.Settings)
	return w, nil
}

func (w *world) stop() {
	if w.api != nil {
		w.api.stop()
	}
	w.db.Stop()
}

// remote steers the API.
func (w *world) remote() sumetest.Remote { return sumetest.Remote{URL: w.url} }

// answering has the API forget what was, and answer every read after a while
// with the job's end.
func (w *world) answering(ctx context.Context, latency time.Duration) error {
	api := w.remote()
	if err := api.Put(ctx, "reset", struct{}{}); err != nil {
		return err
	}
	if err := api.SetOptions(ctx, sumetest.Options{Latency: latency, Unknown: &sumetest.Plan{}}); err != nil {
		return err
	}
	return api.SetFaults(ctx, map[string][]sumetest.Fault{"": {{Body: answer}}})
}

// budget is more than any load takes.
const budget = 5 * time.Minute

// conns is the function's default.
const conns = 4

// setting is one way to put a load on.
type setting struct {
	latency  time.Duration
	inFlight int
	jobs     int // rows of ours and ids of the bare reads
	held     int // rows of the held-lock loop, which is slow
	group    *cgroup.Group
	memory   int64 // MiB; 0: as the machine has it
}

func (t setting) String() string {
	return fmt.Sprintf("%d ms, %d in flight", t.latency.Milliseconds(), t.inFlight)
}

func (t setting) spec(kind, databaseURL, apiURL string) load.Spec {
	return load.Spec{
		Kind: kind, DatabaseURL: databaseURL, APIURL: apiURL, Concurrency: t.inFlight,
		Conns: conns, Jobs: t.jobs, Budget: budget, MemoryMiB: t.memory,
	}
}
