package submissions_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/submissions"
	"sumepoller/internal/submit"
)

// buyAll takes one submission through every statement of the store.
func buyAll(t *testing.T, store submit.Store) {
	t.Helper()
	for range 2 {
		if err := store.Try(t.Context(), "order-42"); err != nil {
			t.Error(err)
		}
		openSubmission(t, store, "order-42", `{"p": 1}`)
		markSubmission(t, store, "order-42", noCredits)
		if sub, err := store.Find(t.Context(), "order-42"); err != nil || sub.JobID == "" && (sub.HTTPStatus != 402 || !sub.Unanswered) {
			t.Errorf("got %+v, %v", sub, err)
		}
		if err := store.Keep(t.Context(), "order-42", "job_1"); err != nil {
			t.Error(err)
		}
		if _, err := store.Unrecord(t.Context(), "order-42", "job_1", "no room"); err != nil {
			t.Error(err)
		}
		if sub := acceptSubmission(t, store, "order-42", "job_1"); sub.State != submit.Accepted || sub.JobState != "pending" {
			t.Errorf("got %+v, want accepted", sub)
		}
	}
}

func TestStore_Rights(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	admin := pgtest.Pool(t, databaseURL)
	role := "sumepoller_submit_" + strings.ToLower(rand.Text())
	runSQL(t, admin, `CREATE ROLE `+role)
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	runSQL(t, admin, `GRANT SELECT, INSERT, UPDATE ON video_jobs, video_submissions TO `+role)
	buyAll(t, submissions.New(pgtest.Pool(t, pgtest.With(t, databaseURL, "options", "-crole="+role))))
}

func TestStore_Modes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			buyAll(t, submissions.New(pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "default_query_exec_mode", mode))))
		})
	}
}
