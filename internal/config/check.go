package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Bounds beyond which a value can only be a slip.
const (
	maxConcurrency = 10_000
	maxConns       = 1_000
	maxLease       = 15 * time.Minute // a function's longest life
)

func (f *Faults) sume(s *Sume) {
	if strings.ContainsFunc(s.APIKeySecretID, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		f.add(APIKeySecretID, "holds blanks or control characters", forms[APIKeySecretID])
	}
	if base, what := baseURL(s.BaseURL); what != "" {
		f.add(APIBaseURL, what, "an address such as https://api.sume.com/v1; http only on loopback")
	} else {
		s.BaseURL = base
	}
	if s.AuthMode != AuthModeBearer && s.AuthMode != AuthModeHeader {
		f.add(APIAuthMode, shown(s.AuthMode)+" is unknown", AuthModeBearer+" or "+AuthModeHeader)
	}
	f.positive(RequestTimeout, s.RequestTimeout)
}

// baseURL returns the address with /v1 at its end, or what is wrong with it.
func baseURL(raw string) (base, what string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "", "is no address"
	case u.Scheme != "https" && u.Scheme != "http":
		return "", "is neither https nor http"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", "holds a login, a query or a fragment"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", "is plain http beyond loopback"
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !strings.HasSuffix(path, "/v1") {
		path += "/v1"
	}
	return u.Scheme + "://" + u.Host + path, ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (f *Faults) reads(r Reads) {
	f.notNegative(ReadsPerMinute, r.PerMinute)
	f.notNegative(ReadsPerDay, r.PerDay)
}

func (f *Faults) database(d Database) {
	f.between(DatabaseMaxConns, d.MaxConns, maxConns)
	f.between(DatabasePort, d.Port, 65_535)
	if d.Auth != "" && d.Auth != DatabaseAuthIAM {
		f.add(DatabaseAuth, shown(d.Auth)+" is unknown", "iam, or nothing")
	}
	if what := notConnecting(d.URL); what != "" {
		f.add(DatabaseURL, what, "postgres://USER:PASSWORD@HOST:PORT/NAME, percent-encoded where needed, or host=… dbname=…")
	}
	if d.URL != "" || f.names(DatabaseAuth) {
		return
	}
	switch {
	case d.SecretID != "" && d.Auth != "":
		f.add(DatabaseAuth, "is set beside "+DatabaseSecretID, "one of the two")
	case d.SecretID != "":
	case d.Auth == DatabaseAuthIAM:
		f.needed(DatabaseHost, d.Host, "the server's host name")
		f.needed(DatabaseName, d.Name, "the database's name")
		f.needed(DatabaseUser, d.User, "the role that logs in")
	default:
		f.add(DatabaseURL, "not set", "a connection string; or set "+DatabaseSecretID+"; or set "+DatabaseAuth+"=iam, "+
			DatabaseHost+", "+DatabaseName+" and "+DatabaseUser)
	}
}

// notConnecting says what is plainly wrong with a connection string. The rest
// is the driver's to say.
func notConnecting(raw string) (what string) {
	scheme, _, isURL := strings.Cut(raw, "://")
	isURL = isURL && !strings.ContainsAny(scheme, "= ")
	switch {
	case raw == "":
	case isURL && scheme != "postgres" && scheme != "postgresql":
		return "is no URL of PostgreSQL"
	case isURL:
		if _, err := url.Parse(raw); err != nil {
			return "does not parse"
		}
	case !strings.Contains(raw, "="):
		return "is no connection string"
	}
	return ""
}

func (f *Faults) poll(p Poll, s Sume) {
	f.between(PollConcurrency, p.Concurrency, maxConcurrency)
	f.positive(PollBudget, p.Budget)
	f.positive(PollLease, p.Lease)
	f.positive(PollDefaultInterval, p.DefaultInterval)
	f.positive(PollMinInterval, p.MinInterval)
	f.positive(PollMaxInterval, p.MaxInterval)
	f.positive(PollBackoffMax, p.BackoffMax)
	if p.Lease > maxLease {
		f.add(PollLease, fmt.Sprintf("%v is too long", p.Lease), "at most "+maxLease.String())
	}
	if least := s.RequestTimeout + leaseMargin(s.RequestTimeout); !f.names(PollLease, RequestTimeout) && p.Lease < least {
		f.add(PollLease, fmt.Sprintf("%v leaves too little time beside %s (%v)", p.Lease, RequestTimeout, s.RequestTimeout),
			fmt.Sprintf("at least %v, or a shorter timeout", least))
	}
	if !f.names(PollMinInterval, PollMaxInterval) && p.MinInterval > p.MaxInterval {
		f.add(PollMinInterval, fmt.Sprintf("%v exceeds %s (%v)", p.MinInterval, PollMaxInterval, p.MaxInterval), "at most that")
	}
}

// leaseMargin is how much longer than a read's timeout a lease has to be. A read
// starts only if the lease outlasts its timeout, and the claim takes its time
// first: a fifth of the timeout, from 100 ms to 3 s.
func leaseMargin(timeout time.Duration) time.Duration {
	return min(max(timeout/5, 100*time.Millisecond), 3*time.Second)
}

func (f *Faults) positive(name string, d time.Duration) {
	if d <= 0 {
		f.add(name, fmt.Sprintf("%v is not positive", d), "a duration above zero, such as 15s")
	}
}

func (f *Faults) notNegative(name string, n int) {
	if n < 0 {
		f.add(name, fmt.Sprintf("%d is negative", n), "a whole number; 0 sets no limit")
	}
}

func (f *Faults) between(name string, n, most int) {
	if n < 1 || n > most {
		f.add(name, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("a whole number from 1 to %d", most))
	}
}

func (f *Faults) needed(name, value, want string) {
	if value == "" {
		f.add(name, "not set", want)
	}
}
