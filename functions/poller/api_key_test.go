package main_test

import (
	"strings"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

const renewedKey = "sk_planted_renewed_77c1"

// A key that is rotated while the old one is cached costs some refused reads, and
// no row an error.
func TestKey_RotatedWhileCached(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.sandbox(t, "POLL_BUDGET=20s")
	b.secrets = append(b.secrets, renewedKey)
	s.due(t, sumetest.Plan{}, "job_first")
	b.tick(t) // the key is cached

	s.rotate(renewedKey)
	s.due(t, sumetest.Plan{}, ids("between", 100)...)
	if got := b.tick(t); got.Finished["completed"] != 100 || got.Errors[poller.Unauthorized] > 0 {
		t.Errorf("rotated between two runs: %+v", got)
	}
	s.slow(50*time.Millisecond, 100*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("during", 400)...)
	answer := b.begin(t, "")
	s.read(t, 150)
	s.rotate(plantedKey)
	got, err := answer()
	if err != nil || got.Failure != nil {
		t.Fatalf("error %v, answer %s", err, got.Body())
	}
	s.ended(t, map[string]int{"completed": 501})
	if seen := s.api.Stats(); seen.Refused == 0 || seen.Refused > 70 {
		t.Errorf("%d reads were refused, want some and at most 70", seen.Refused)
	}
	if calls := s.vault.Calls(); calls != 3 {
		t.Errorf("%d calls of Secrets Manager, want one for each key", calls)
	}
	s.spare(t)
}

// rotate changes the key, first in the secret and then at the API, as a rotation
// does.
func (s *stage) rotate(key string) {
	s.vault.Set(plantedKeyID, `{"api_key": "`+key+`"}`, false)
	s.options.Keys = []string{key}
	s.api.SetKeys(key)
}

// A key that the API no longer accepts ends the run, and no row is charged.
func TestKey_RefusedForever(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]int{"from the first read on": 0, "with 64 reads in flight": 150} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.slow(50*time.Millisecond, 100*time.Millisecond)
			s.due(t, sumetest.Plan{}, ids("job", 500)...)
			b := s.sandbox(t, "POLL_BUDGET=20s")
			revoke := func() { s.options.Keys = []string{"another"}; s.api.SetKeys("another") }
			if from == 0 {
				revoke()
			}
			answer := b.begin(t, "")
			s.read(t, from)
			revoke()
			got, err := answer()
			if err != nil || got.Failure == nil || !strings.HasPrefix(got.Failure.Message, "unauthorized: ") {
				t.Fatalf("error %v, answer %s", err, got.Body())
			}
			if refused := s.api.Stats().Refused; refused < 1 || refused > 70 {
				t.Errorf("%d reads were refused, want at most 70", refused)
			}
			finished := s.number(t, completed)
			_, text, _ := strings.Cut(got.Failure.Message, "\n")
			if sum := summary(t, text); sum.Finished["completed"] != finished || sum.DueRemaining != 500-finished {
				t.Errorf("%d are completed, summary %+v", finished, sum)
			}
			s.spare(t)
			if n := s.number(t, waiting); n != 500-finished {
				t.Errorf("%d rows are due, want %d", n, 500-finished)
			}
			s.rotate("another")
			b.secrets = append(b.secrets, `"another"`)
			b.tick(t)
			s.ended(t, map[string]int{"completed": 500})
		})
	}
}

// A secret that is missing or holds no key is named in one line.
func TestKey_UnusableSecret(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 20)...)
	const leaked = "sk_planted_leaked_19ae"
	for id, test := range map[string]struct {
		value  string
		binary bool
		want   string
	}{
		"sume/missing":     {want: "not found"},
		"sume/empty":       {value: " \n", want: "empty"},
		"sume/placeholder": {value: "REPLACE_ME", want: "placeholder"},
		"sume/binary":      {value: leaked, binary: true, want: "binary"},
		"sume/twolines":    {value: leaked + "\n" + leaked, want: "control"},
		"sume/othername":   {value: `{"key": "` + leaked + `"}`, want: "without api_key"},
		"sume/number":      {value: `{"api_key": 7}`, want: "not a string"},
		"sume/broken":      {value: `{"api_key": "` + leaked, want: "neither"},
		"sume/quoted":      {value: `"` + leaked + `"`, want: "neither"},
		"sume/inner":       {value: `{"api_key": "REPLACE_ME"}`, want: "placeholder"},
	} {
		t.Run(id, func(t *testing.T) {
			if test.value != "" {
				s.vault.Set(id, test.value, test.binary)
			}
			b := s.sandbox(t, config.APIKeySecretID+"="+id)
			b.secrets = append(b.secrets, leaked)
			line, sum := b.fails(t, poller.KindSecret)
			if !strings.Contains(line, id) || !strings.Contains(line, test.want) || sum.ElapsedSeconds > 50 {
				t.Errorf("after %v s: %q, want the id and %q", sum.ElapsedSeconds, line, test.want)
			}
		})
	}
	if reads := s.api.Stats().Reads; reads > 0 {
		t.Errorf("%d reads", reads)
	}
	s.untouched(t, 20)
}

// A run without Secrets Manager fails within seconds and names the cause. With a
// cached key it works.
func TestKey_SecretsManagerFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail func(*sumetest.Secrets)
		want string
	}{
		"silent":     {func(v *sumetest.Secrets) { v.Silence(true) }, "VPC endpoint"},
		"throttling": {func(v *sumetest.Secrets) { v.Throttle(1000) }, "throttled"},
		"failing":    {func(v *sumetest.Secrets) { v.Fail(true) }, "InternalServiceError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.due(t, sumetest.Plan{}, ids("job", 20)...)
			test.fail(s.vault)
			b := s.sandbox(t, "POLL_BUDGET=8s")
			line, sum := b.fails(t, poller.KindSecret)
			if !strings.Contains(line, plantedKeyID) || !strings.Contains(line, test.want) || sum.ElapsedSeconds > 40 {
				t.Errorf("after %v s: %q, want the id and %q", sum.ElapsedSeconds, line, test.want)
			}
			s.untouched(t, 20)
			s.vault.Silence(false)
			s.vault.Throttle(2)
			s.vault.Fail(false)
			if got := b.tick(t); got.Finished["completed"] != 20 {
				t.Errorf("after it: %+v", got)
			}
			s.vault.Silence(true)
			s.due(t, sumetest.Plan{}, "job_more")
			if got := b.tick(t); got.Finished["completed"] != 1 {
				t.Errorf("with a cached key: %+v", got)
			}
		})
	}
}

// The API refuses the cached key while Secrets Manager fails. The run fails, and
// the next one recovers.
func TestKey_RefusedWithoutSecretsManager(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.sandbox(t, "POLL_BUDGET=8s")
	b.secrets = append(b.secrets, renewedKey)
	b.tick(t)
	s.due(t, sumetest.Plan{}, ids("job", 200)...)
	s.rotate(renewedKey)
	s.vault.Fail(true)
	b.fails(t, poller.KindUnauthorized)
	s.untouched(t, 200)
	if refused := s.api.Stats().Refused; refused > 70 {
		t.Errorf("%d reads were refused", refused)
	}
	s.vault.Fail(false)
	b.tick(t)
	s.ended(t, map[string]int{"completed": 200})
}

func TestKey_SecretForms(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for id, value := range map[string]string{
		"sume/plain": plantedKey, "sume/newline": plantedKey + "\r\n", "sume/json": `{"other": 1, "api_key": "` + plantedKey + `"}`,
	} {
		s.vault.Set(id, value, false)
		s.due(t, sumetest.Plan{}, id)
		for _, mode := range []string{"bearer", "x-api-key"} {
			b := s.sandbox(t, config.APIKeySecretID+"="+id, "SUME_API_AUTH_MODE="+mode)
			b.tick(t)
		}
	}
	s.ended(t, map[string]int{"completed": 3})
}

// untouched checks that there are so many rows, as they were before any run.
func (s *stage) untouched(t *testing.T, rows int) {
	t.Helper()
	s.spare(t)
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE polls > 0 OR last_polled_at IS NOT NULL`)
	if n := s.number(t, waiting); n != rows {
		t.Errorf("%d rows are due, want %d", n, rows)
	}
}
