package main_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// sandbox is one process of the built function in Lambda's emulator.
type sandbox struct {
	*devstack.Function
	secrets []string // that no output may hold
}

// sandbox starts a sandbox with a time limit of one minute.
func (s *stage) sandbox(t *testing.T, environ ...string) *sandbox {
	t.Helper()
	return s.limited(t, time.Minute, environ...)
}

// limited starts a sandbox with this time limit. When the test ends, its log is
// searched for secrets.
func (s *stage) limited(t *testing.T, limit time.Duration, environ ...string) *sandbox {
	t.Helper()
	bootstrap, err := built()
	if err != nil {
		t.Fatal(err)
	}
	env := s.environment(environ)
	f, err := devstack.StartFunction(t.Context(), "poller", bootstrap, env, limit)
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{Function: f, secrets: []string{plantedKey, plantedPassword, plantedAWSKey, sumetest.SignedURL, "X-Signature", "://postgres", "://poller"}}
	if u, err := url.Parse(env[config.DatabaseURL]); err == nil && u.User != nil {
		password, _ := u.User.Password()
		b.secrets = append(b.secrets, u.String(), password)
	}
	t.Cleanup(func() {
		f.Stop()
		b.discreet(t, f.Log())
	})
	return b
}

// discreet checks that an output of the function holds no secret.
func (b *sandbox) discreet(t *testing.T, output string) {
	t.Helper()
	for _, secret := range b.secrets {
		if secret != "" && strings.Contains(output, secret) {
			t.Errorf("the output holds %q:\n%s", secret, excerpt(output, secret))
		}
	}
}

func excerpt(log, word string) string {
	i := strings.Index(log, word)
	return log[max(0, i-400):min(len(log), i+400)]
}

// invoke invokes a scheduled run, and fails without an answer.
func (b *sandbox) invoke(t *testing.T, requestID string) devstack.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := b.InvokeAs(ctx, requestID, []byte(`{}`))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Log())
	}
	b.discreet(t, string(got.Body()))
	return got
}

// tick invokes a scheduled run that must succeed, and returns its summary.
func (b *sandbox) tick(t *testing.T) poller.Summary {
	t.Helper()
	got := b.invoke(t, "")
	if got.Failure != nil {
		t.Fatalf("the tick failed: %v", got.Failure)
	}
	return summary(t, string(got.Payload))
}

// fails invokes a scheduled run that must fail with a run error of this kind.
func (b *sandbox) fails(t *testing.T, kind string) (line string, sum poller.Summary) {
	t.Helper()
	return failure(t, b.invoke(t, ""), kind)
}

func failure(t *testing.T, got devstack.Result, kind string) (line string, sum poller.Summary) {
	t.Helper()
	if got.Failure == nil || got.TimedOut || !strings.HasPrefix(got.Failure.Message, kind+": ") {
		t.Fatalf("answer %s, want an error that begins with %s:", got.Body(), kind)
	}
	line, rest, _ := strings.Cut(got.Failure.Message, "\n")
	return line, summary(t, rest)
}

// begin starts a scheduled run. answer waits for its answer; a sandbox that is
// killed has none.
func (b *sandbox) begin(t *testing.T, requestID string) (answer func() (devstack.Result, error)) {
	t.Helper()
	var got devstack.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = b.InvokeAs(t.Context(), requestID, []byte(`{}`))
	}()
	return func() (devstack.Result, error) {
		<-done
		b.discreet(t, string(got.Body()))
		return got, err
	}
}

// answered returns the summary of a run that was begun and must succeed.
func answered(t *testing.T, answer func() (devstack.Result, error)) poller.Summary {
	t.Helper()
	got, err := answer()
	if err != nil || got.Failure != nil {
		t.Fatalf("error %v, failure %v", err, got.Failure)
	}
	return summary(t, string(got.Payload))
}

func summary(t *testing.T, answer string) (s poller.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer), &s); err != nil {
		t.Fatalf("%v in %q", err, answer)
	}
	return s
}
