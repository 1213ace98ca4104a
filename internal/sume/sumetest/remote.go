package sumetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Remote steers an API in another process by its control endpoint.
type Remote struct {
	URL string // of the server, such as http://127.0.0.1:8080
}

// Put sends a control request: name is the last part of its path, in its body.
func (r Remote) Put(ctx context.Context, name string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return r.do(ctx, http.MethodPut, name, body, nil)
}

// AddJobs adds jobs with their plans.
func (r Remote) AddJobs(ctx context.Context, jobs map[string]Plan) error {
	return r.Put(ctx, "jobs", jobs)
}

// SetFaults replaces the faults of the jobs named; "" is any job.
func (r Remote) SetFaults(ctx context.Context, faults map[string][]Fault) error {
	return r.Put(ctx, "faults", faults)
}

// SetOptions replaces all options.
func (r Remote) SetOptions(ctx context.Context, o Options) error {
	return r.Put(ctx, "options", o)
}

// SetSecret stores a secret string under its id.
func (r Remote) SetSecret(ctx context.Context, id, value string) error {
	return r.Put(ctx, "secrets", map[string]Secret{id: {Value: value}})
}

// Stats returns what the API has seen.
func (r Remote) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	err := r.do(ctx, http.MethodGet, "stats", nil, &s)
	return s, err
}

// Times returns when each read arrived, oldest first.
func (r Remote) Times(ctx context.Context) ([]time.Time, error) {
	var t []time.Time
	err := r.do(ctx, http.MethodGet, "times", nil, &t)
	return t, err
}

func (r Remote) do(ctx context.Context, method, name string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+"/_control/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("control %s: status %d", name, resp.StatusCode)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
