package main

import (
	"context"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/sume/sumetest"
)

// finished is the answer to every read: 240 bytes with the id of a row.
const finished = `{"data":{"job_id":"{id}","status":"COMPLETED","sume_status":"completed","terminal":true,"result_ready":true,` +
	`"next_action":"fetch_result","job":{"id":"{id}","type":"video_generation","status":"completed"}},"request_id":"req_0123456789"}`

// setup is what loads work on: a PostgreSQL server, and a simulated Sume API
// with Secrets Manager in this process, which only waits while a load runs.
type setup struct {
	db      *database.Server
	api     *sumetest.API
	secrets *sumetest.Secrets
	server  *sumetest.Server
}

// newSetup starts both. Stop it in every case.
func newSetup(ctx context.Context, s *scene) (*setup, error) {
	u := &setup{api: sumetest.New(sumetest.Options{}), secrets: sumetest.NewSecrets()}
	var err error
	if u.db, err = database.Start(ctx); err != nil {
		return nil, err
	}
	s.Machine += ", PostgreSQL " + u.db.Version
	if u.server, err = sumetest.Listen(sumetest.Handler(u.api, u.secrets)); err != nil {
		u.db.Stop()
		return nil, err
	}
	return u, nil
}

func (u *setup) stop() {
	u.server.Close()
	u.db.Stop()
}

// resetAPI makes the API answer every read after latency with the end of the
// job, and forget the reads so far.
func (u *setup) resetAPI(latency time.Duration) {
	u.api.Reset()
	u.api.SetOptions(sumetest.Options{Latency: latency, Unknown: &sumetest.Plan{}})
	u.api.SetFault("", sumetest.Fault{Body: finished})
}
