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

// sandbox is one built function in the emulator.
type sandbox struct {
	*devstack.Function
	secrets []string
}

// sandbox starts one with a limit of a minute.
func (s *stage) sandbox(t *testing.T, environ ...string) *sandbox {
	t.Helper()
	return s.limited(t, time.Minute, environ...)
}

// limited starts a sandbox with a limit of its own. When the test ends, its log
// is searched for secrets.
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

// discreet wants no secret in what a function put out.
func (b *sandbox) discreet(t *testing.T, text string) {
	t.Helper()
	for _, secret := range b.secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%q stands in the output:\n%s", secret, excerpt(text, secret))
		}
	}
}

func excerpt(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-400):min(len(text), i+400)]
}

// invoke invokes the schedule's pass and wants some answer.
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

// tick wants a pass that does its work.
func (b *sandbox) tick(t *testing.T) poller.Summary {
	t.Helper()
	got := b.invoke(t, "")
	if got.Failure != nil {
		t.Fatalf("the tick failed: %v", got.Failure)
	}
	return summary(t, string(got.Payload))
}

// fails wants a pass that fails with an error of this kind, and its summary.
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

// begin invokes in the background; the answer is waited for when it is asked.
// A sandbox that is killed meanwhile has none.
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

// answered wants the summary of a pass that was begun and did its work.
func answered(t *testing.T, answer func() (devstack.Result, error)) poller.Summary {
	t.Helper()
	got, err := answer()
	if err != nil || got.Failure != nil {
		t.Fatalf("error %v, failure %v", err, got.Failure)
	}
	return summary(t, string(got.Payload))
}

func summary(t *testing.T, text string) (s poller.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return s
}
