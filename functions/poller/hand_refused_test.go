package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// invalidField names the field that the error for each invalid payload begins with.
var invalidField = map[string]string{
	"backfill-empty": "backfill", "backfill-null": "backfill", "nothing-selected": "backfill", "field-twice": "backfill.job_ids",
	"backfill-in-event": "backfill", "other-spelling-of-backfill": "Backfill", "two-at-once": "stop",
	"half-an-event": "source", "list": "payload", "number": "payload", "text": "payload", "cut-off": "payload", "trailing": "payload",
	"id-whitespace": "backfill.job_ids[1]", "id-control": "backfill.job_ids[0]", "id-dot": "backfill.job_ids[0]", "id-dots": "backfill.job_ids[2]",
	"id-half-surrogate": "backfill.job_ids[0]", "id-long": "backfill.job_ids[0]", "id-null": "backfill.job_ids[1]",
	"id-number": "backfill.job_ids[0]", "ids-null": "backfill.job_ids",
	"inspect-limit-zero": "inspect.limit", "inspect-list": "inspect",
	"limit-fraction": "backfill.limit", "limit-negative": "backfill.limit", "limit-zero": "backfill.limit",
	"rate-below-one": "backfill.reads_per_minute", "overdue-text": "backfill.overdue",
	"other-spelling": "backfill.Job_IDs", "unknown-field": "backfill.state",
	"states-pending": "backfill.states[1]", "states-text": "backfill.states",
	"stop-nothing": "stop.job_ids", "stop-null": "stop",
	"time-of-another-form": "backfill.created_after", "times-unordered": "backfill.created_after",
}

func TestPayload_RefusedUnchanged(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/refused/*.json")
	if err != nil || len(files) != len(invalidField) {
		t.Fatalf("%d files, want %d (error %v)", len(files), len(invalidField), err)
	}
	s := newStage(t)
	s.mixed(t)
	s.due(t, finishes, "job_1") // a scheduled run would read it
	s.exec(t, `INSERT INTO video_submissions (idempotency_key, request, state) VALUES ('order-1', '{}', 'sending')`)
	s.exec(t, `INSERT INTO read_budget (day, reads) VALUES ((now() AT TIME ZONE 'UTC')::date, 30)`)
	b := s.sandbox(t)
	before := s.checksum(t)
	for _, file := range files {
		payload, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		b.refuses(t, string(payload), invalidField[name])
	}
	// More ids than a request may have.
	b.refuses(t, fmt.Sprintf(`{"backfill": {"job_ids": %s}}`, list(t, ids("job", 250_001))), "backfill.job_ids")
	if diff := cmp.Diff(before, s.checksum(t)); diff != "" {
		t.Errorf("tables (-before +after):\n%s", diff)
	}
	if reads := s.api.Stats().Reads; reads > 0 {
		t.Errorf("%d reads", reads)
	}
}

// refuses invokes and wants an error of one line that begins with the field.
func (b *sandbox) refuses(t *testing.T, payload, field string) {
	t.Helper()
	got := b.ask(t, payload)
	if got.Failure == nil || got.TimedOut {
		t.Errorf("%.200s: answered %s", payload, got.Payload)
		return
	}
	if said := got.Failure.Message; field == "" || !strings.HasPrefix(said, field+": ") || strings.ContainsAny(said, "\r\n") || len(said) > 300 {
		t.Errorf("%.200s: refused with %q, want one line that begins with %q", payload, said, field+": ")
	}
}

func TestBackfill_DryRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	s.exec(t, `UPDATE video_jobs SET next_poll_at = now() - interval '1 hour' WHERE job_id IN ('pending_3', 'failing_4')`) // due already
	s.exec(t, `UPDATE video_jobs SET next_poll_at = now() + interval '1 minute' WHERE job_id IN ('pending_4', 'failing_5')`)
	s.exec(t, `UPDATE video_jobs SET next_poll_at = 'infinity' WHERE job_id = 'failing_6'`)
	dry := s.sandbox(t, "SUME_API_KEY_SECRET_ID=sume/missing")
	wet := s.sandbox(t, "POLL_BUDGET=2s")
	for _, selection := range []string{
		`"states": ["Failed", "completed "]`,
		`"states": ["failed"], "limit": 2`,
		`"overdue": true, "created_before": "2026-11-01T06:00:00Z"`,
		`"job_ids": ["pending_1", "pending_3", "pending_4", "new_1", "new_2", "failing_1", "completed_2"], "limit": 5`,
		`"job_ids": ["failed_9", "new_3"], "states": ["failed", "stopped"], "overdue": true, "created_after": "2026-11-01T05:00:00Z", "limit": 14`,
		`"job_ids": ["pending_5", "new_4"], "states": ["not_found", "completed"], "overdue": true`,
		`"job_ids": ` + list(t, ids("many", 150)) + `, "reads_per_minute": 1`,
	} {
		before := s.checksum(t)
		would := dry.ran(t, `{"backfill": {"dry_run": true, `+selection+`}}`)
		if diff := cmp.Diff(before, s.checksum(t)); diff != "" {
			t.Errorf("%.100s: tables after the dry run (-before +after):\n%s", selection, diff)
		}
		if would.Mode != operator.ModeBackfill || would.Claimed > 0 || would.Stopped != poller.StoppedDrained {
			t.Errorf("%.100s: %+v, want a dry run that claims nothing", selection, would)
		}
		did := wet.ran(t, `{"backfill": {`+selection+`}}`)
		if did.Registered != would.Registered || did.Reopened != would.Reopened {
			t.Errorf("%.100s: registered %d, reopened %d; the dry run counted %d and %d",
				selection, did.Registered, did.Reopened, would.Registered, would.Reopened)
		}
		if !strings.Contains(selection, "Failed") && did.Registered+did.Reopened == 0 {
			t.Errorf("%.100s: nothing was changed", selection)
		}
	}
}

func TestInspect_StuckSubmissions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(t, `
INSERT INTO video_submissions (idempotency_key, request, state, created_at, last_error)
VALUES ('order-young', '{}', 'sending', now() - interval '9 minutes', NULL),
       ('order-old', '{}', 'sending', now() - interval '11 minutes', 'timeout'),
       ('order-done', '{}', 'accepted', now() - interval '11 minutes', NULL)`)
	b := s.sandbox(t, "POLL_BUDGET=2s")
	got := askFor[operator.Inspection](t, b, `{"inspect": {}}`)
	if got.SubmissionsTotal != 2 || got.SubmissionsStuck != 1 || len(got.Submissions) != 2 || got.Submissions[0].IdempotencyKey != "order-old" || got.Submissions[0].AgeSeconds < 660 {
		t.Errorf("inspect %+v, want order-old as stuck before order-young", got)
	}
	b.tick(t)
	for _, want := range []string{`"StuckSubmissions":1`, `"stuck_submissions":1`} {
		if !strings.Contains(b.Log(), want) {
			t.Errorf("no %s in the log:\n%s", want, b.Log())
		}
	}
}
