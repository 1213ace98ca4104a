package poller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
)

func TestFairness_FailingRowsAtTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 20 * time.Millisecond}
		for i := range 76 {
			id := fmt.Sprintf("job_%02d", i)
			table.Add(id, time.Duration(i-100)*time.Second)
			api.Start(id, time.Now())
		}
		api.Answer = func(id string, _ int) (poller.Answer, error, bool) {
			switch {
			case id < "job_25":
				return errorAnswer(404)
			case id == "job_25":
				return errorAnswer(403)
			}
			return poller.Answer{}, nil, false
		}
		sum := mustPass(t, poller.New(defaults(), quiet()), table, api)
		if sum.Finished["completed"] != 50 || sum.Errors[poller.HTTP4xx] < 26 {
			t.Errorf("got %s, want 50 completed and 26 errors", sum.JSON())
		}
	})
}

func TestKey_FiveRefusedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 20 * time.Millisecond}
		for i := range 100 {
			table.Add(fmt.Sprintf("job_%02d", i), 0)
		}
		api.Answer = func(string, int) (poller.Answer, error, bool) { return errorAnswer(403) }
		sum, err := pass(t, poller.New(defaults(), quiet()), table, api, 90*time.Second)
		if err == nil || sum.Reads > 70 {
			t.Errorf("got %v after %d reads, want unauthorized within 70", err, sum.Reads)
		}
		for _, row := range table.Rows() {
			if row.ConsecutiveErrors != 0 || !row.LeasedUntil.IsZero() {
				t.Fatalf("%s has an error or a lease: %+v", row.ID, row)
			}
		}
	})
}

func TestKey_RowWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 20 * time.Millisecond}
		for i := range 100 {
			table.Add(fmt.Sprintf("job_%02d", i), time.Duration(i-100)*time.Second)
		}
		api.Answer = func(id string, _ int) (poller.Answer, error, bool) {
			if id == "job_00" {
				return poller.Answer{}, &poller.ReadError{Class: poller.Malformed, Reason: "not sent", RetryAfter: -1}, true
			}
			return errorAnswer(403)
		}
		sum, err := pass(t, poller.New(defaults(), quiet()), table, api, 90*time.Second)
		if err == nil || sum.Reads > 70 {
			t.Errorf("got %v after %d reads, want unauthorized within 70", err, sum.Reads)
		}
		for _, row := range table.Rows() {
			if (row.ConsecutiveErrors > 0) != (row.ID == "job_00") || !row.LeasedUntil.IsZero() {
				t.Fatalf("%s: %+v, want an error of the first row alone and no lease", row.ID, row)
			}
		}
	})
}

func TestKey_FourRefusedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 20 * time.Millisecond}
		for i := range 4 {
			table.Add(fmt.Sprintf("job_%02d", i), 0)
		}
		api.Answer = func(string, int) (poller.Answer, error, bool) { return errorAnswer(403) }
		s := defaults()
		s.Budget = 10 * time.Second
		sum := mustPass(t, poller.New(s, quiet()), table, api)
		if sum.Errors[poller.HTTP4xx] != 4 || sum.Stopped != poller.StoppedDrained {
			t.Errorf("got %s, want 4 errors and drained", sum.JSON())
		}
	})
}

func TestRun_APIDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 5 * time.Millisecond}
		down := true
		for i := range 2000 {
			id := fmt.Sprintf("job_%04d", i)
			table.Add(id, 0)
			api.Start(id, time.Now())
		}
		api.Answer = func(string, int) (poller.Answer, error, bool) {
			return poller.Answer{}, &poller.ReadError{Class: poller.Network, RetryAfter: -1}, down
		}
		p := poller.New(defaults(), quiet())
		sum := mustPass(t, p, table, api)
		if sum.Stopped != poller.StoppedAPIUnavailable || len(api.Reads) >= 200 {
			t.Fatalf("got %s after %d reads", sum.Stopped, len(api.Reads))
		}
		read := api.Counts()
		for _, row := range table.Rows() {
			if !row.LeasedUntil.IsZero() || (row.ConsecutiveErrors > 0) != (read[row.ID] > 0) {
				t.Fatalf("%s, read %d times: %+v", row.ID, read[row.ID], row)
			}
		}
		down = false
		sum = mustPass(t, p, table, api)
		if sum.Finished["completed"] != 2000 {
			t.Errorf("got %s after the API came back, want all 2000", sum.JSON())
		}
	})
}

func TestRead_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 5 * time.Millisecond}
		for _, id := range []string{"job_1", "job_2", "job_3"} {
			table.Add(id, 0)
			api.Start(id, time.Now())
		}
		s := defaults()
		s.Budget = 10 * time.Second
		sum := mustPass(t, poller.New(s, quiet()), table, panicky{api})
		if sum.Finished["completed"] != 2 || sum.Errors[poller.Malformed] != 1 {
			t.Errorf("got %s, want two completed and one malformed", sum.JSON())
		}
	})
}

type panicky struct{ poller.Reader }

func (p panicky) Status(ctx context.Context, id string) (poller.Answer, error) {
	if id == "job_2" {
		panic("out of range")
	}
	return p.Reader.Status(ctx, id)
}

func TestKey_NoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Add("job_1", 0)
		api := &fakeAPI{Answer: func(string, int) (poller.Answer, error, bool) {
			return poller.Answer{}, &poller.ReadError{Class: poller.Unauthorized, Reason: "no usable key", RetryAfter: -1}, true
		}}
		sum, err := pass(t, poller.New(defaults(), quiet()), table, api, 90*time.Second)
		var failed *poller.RunError
		if !errors.As(err, &failed) || failed.Kind != poller.KindSecret || sum.Errors[poller.Unauthorized] != 0 || sum.Released != 1 {
			t.Errorf("got %v and %s, want a failed secret and the row released", err, sum.JSON())
		}
	})
}
