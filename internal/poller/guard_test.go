package poller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func failedRead(id string, f ReadError) read {
	f.RetryAfter = -1
	return read{job: Job{ID: id}, err: &f}
}

var (
	keyAnswer   = ReadError{Class: Unauthorized, HTTPStatus: 401, JSON: true}
	forbidden   = ReadError{Class: HTTP4xx, HTTPStatus: 403, JSON: true}
	notFound    = ReadError{Class: HTTP4xx, HTTPStatus: 404, JSON: true}
	unavailable = ReadError{Class: HTTP5xx, HTTPStatus: 503}
	noAnswer    = ReadError{Class: Timeout}
)

func TestGuard_Judge(t *testing.T) {
	good := read{job: Job{ID: "good"}}
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	type step struct {
		read    read
		want    verdict
		cleared int
	}
	bad := func(f ReadError) read { return failedRead("bad", f) }
	for name, steps := range map[string][]step{
		"401 first":                   {{bad(keyAnswer), keyRefused, 0}},
		"401 after no answer":         {{bad(noAnswer), ofRow, 0}, {bad(keyAnswer), keyRefused, 0}},
		"401 after a gateway's error": {{bad(unavailable), ofRow, 0}, {bad(keyAnswer), keyRefused, 0}},
		"401 after 403":               {{bad(forbidden), suspect, 0}, {bad(keyAnswer), keyRefused, 0}},
		"401 after a good answer":     {{good, ofRow, 0}, {bad(keyAnswer), suspect, 0}, {good, ofRow, 1}},
		"401 after 404":               {{bad(notFound), ofRow, 0}, {bad(keyAnswer), suspect, 0}, {bad(notFound), ofRow, 1}},
		"401 five times after a good answer": {
			{good, ofRow, 0},
			{bad(keyAnswer), suspect, 0},
			{bad(keyAnswer), suspect, 0},
			{bad(forbidden), ofRow, 0}, // does not show that the key is accepted
			{bad(keyAnswer), suspect, 0},
			{bad(keyAnswer), suspect, 0},
			{bad(keyAnswer), keyRefused, 0},
		},
		"401 beside reads in flight": {
			{good, ofRow, 0},
			{read{job: Job{ID: "bad"}, err: &keyAnswer, ended: at(2)}, suspect, 0},
			{read{began: at(1), ended: at(3)}, ofRow, 0},
			{read{began: at(2), ended: at(4)}, ofRow, 1},
		},
		"403 and then a good answer": {{bad(forbidden), suspect, 0}, {bad(forbidden), suspect, 0}, {good, ofRow, 2}, {bad(forbidden), ofRow, 0}},
		"403 and then 503":           {{bad(forbidden), suspect, 0}, {bad(unavailable), ofRow, 1}, {bad(forbidden), ofRow, 0}},
		"403 five times": {
			{bad(forbidden), suspect, 0},
			{bad(forbidden), suspect, 0},
			{bad(noAnswer), ofRow, 0},
			{bad(forbidden), suspect, 0},
			{bad(forbidden), suspect, 0},
			{bad(forbidden), keyRefused, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g guard
			for i, s := range steps {
				v, cleared := g.judge(s.read)
				if v != s.want || len(cleared) != s.cleared {
					t.Errorf("answer %d: got verdict %d and %d cleared, want %d and %d", i+1, v, len(cleared), s.want, s.cleared)
				}
			}
		})
	}
}

func TestGuard_APIDown(t *testing.T) {
	lost := func(connection uint64) *ReadError { return &ReadError{Class: Network, Connection: connection} }
	many := func(n int, f func(i int) *ReadError) (errs []*ReadError) {
		for i := range n {
			errs = append(errs, f(i))
		}
		return errs
	}
	for name, c := range map[string]struct {
		errs []*ReadError
		want bool
	}{
		"nineteen errors":          {many(19, func(int) *ReadError { return lost(0) }), false},
		"twenty errors":            {many(20, func(int) *ReadError { return lost(0) }), true},
		"one connection":           {many(64, func(int) *ReadError { return lost(7) }), false},
		"two connections in turn":  {many(64, func(i int) *ReadError { return lost(1 + uint64(i%2)) }), false},
		"a connection each":        {many(20, func(i int) *ReadError { return lost(1 + uint64(i)) }), true},
		"reads that were not sent": {many(30, func(int) *ReadError { return &ReadError{Class: Malformed} }), false},
		"a good answer between":    {append(many(19, func(int) *ReadError { return lost(0) }), nil, lost(0)), false},
		"a JSON answer between":    {append(many(19, func(int) *ReadError { return lost(0) }), &notFound, lost(0)), false},
		"HTML of a gateway":        {many(20, func(int) *ReadError { return &ReadError{Class: HTTP4xx, HTTPStatus: 404} }), true},
		"429 between":              {append(many(19, func(int) *ReadError { return lost(0) }), &ReadError{Class: RateLimited}, lost(0)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g guard
			var got bool
			for _, f := range c.errs {
				got = g.apiDown(f)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
