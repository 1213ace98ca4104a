package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A value beyond these bounds is a mistake.
const (
	maxConcurrency = 10_000
	maxConns       = 1_000
	maxLease       = 15 * time.Minute // the longest time limit of a function
)

func (e *Errors) sume(s *Sume) {
	if strings.ContainsFunc(s.APIKeySecretID, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		e.add(APIKeySecretID, "holds whitespace or control characters", forms[APIKeySecretID])
	}
	e.api(&s.API)
	if authModes[s.AuthMode] == "" {
		e.add(APIAuthMode, shown(s.AuthMode)+" is unknown", strings.Join(slices.Sorted(maps.Keys(authModes)), " or "))
	}
	e.positive(RequestTimeout, s.RequestTimeout)
}

// api checks the base URL and makes it end with /v1.
func (e *Errors) api(a *API) {
	u, err := url.Parse(a.BaseURL)
	problem := ""
	switch {
	case err != nil || u.Hostname() == "":
		problem = "is not an absolute URL"
	case u.Scheme != "https" && u.Scheme != "http":
		problem = "is neither https nor http"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		problem = "holds a login, a query or a fragment"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		problem = "is plain http beyond loopback"
	}
	if problem != "" {
		e.add(APIBaseURL, problem, "a URL such as https://api.sume.com/v1; http only on loopback")
		return
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !strings.HasSuffix(path, "/v1") {
		path += "/v1"
	}
	a.BaseURL = u.Scheme + "://" + u.Host + path
}

func (e *Errors) reads(r Reads) {
	e.notNegative(ReadsPerMinute, r.PerMinute)
	e.notNegative(ReadsPerDay, r.PerDay)
}

func (e *Errors) poll(p Poll, s Sume) {
	e.between(PollConcurrency, p.Concurrency, maxConcurrency)
	e.positive(PollBudget, p.Budget)
	e.positive(PollLease, p.Lease)
	e.positive(PollDefaultInterval, p.DefaultInterval)
	e.positive(PollMinInterval, p.MinInterval)
	e.positive(PollMaxInterval, p.MaxInterval)
	e.positive(PollBackoffMax, p.BackoffMax)
	if p.Lease > maxLease {
		e.add(PollLease, fmt.Sprintf("%v is too long", p.Lease), "at most "+maxLease.String())
	}
	if least := s.RequestTimeout + leaseMargin(s.RequestTimeout); !e.has(PollLease, RequestTimeout) && p.Lease < least {
		e.add(PollLease, fmt.Sprintf("%v leaves too little time beside %s (%v)", p.Lease, RequestTimeout, s.RequestTimeout),
			fmt.Sprintf("at least %v, or a shorter timeout", least))
	}
	if !e.has(PollMinInterval, PollMaxInterval) && p.MinInterval > p.MaxInterval {
		e.add(PollMinInterval, fmt.Sprintf("%v exceeds %s (%v)", p.MinInterval, PollMaxInterval, p.MaxInterval), "at most that")
	}
}

// leaseMargin is the least difference between a lease and the timeout of a read:
// a fifth of the timeout, from 100 ms to 3 s. The lease begins before the claim
// is sent, and a read starts only if the rest of the lease outlasts its timeout.
func leaseMargin(timeout time.Duration) time.Duration {
	return min(max(timeout/5, 100*time.Millisecond), 3*time.Second)
}

func (e *Errors) positive(name string, d time.Duration) {
	if d <= 0 {
		e.add(name, fmt.Sprintf("%v is not positive", d), "a duration above zero, such as 15s")
	}
}

func (e *Errors) notNegative(name string, n int) {
	if n < 0 {
		e.add(name, fmt.Sprintf("%d is negative", n), "an integer; 0 sets no limit")
	}
}

func (e *Errors) between(name string, n, most int) {
	if n < 1 || n > most {
		e.add(name, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("an integer from 1 to %d", most))
	}
}

func (e *Errors) needed(name, value, want string) {
	if value == "" {
		e.add(name, "not set", want)
	}
}
