package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres"
	"sumepoller/internal/submit"
)

// withParameter adds a parameter to a connection string.
func withParameter(t *testing.T, databaseURL, name, value string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

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

func TestSubmissionsOfARoleThatReadsAndWritesOnly(t *testing.T) {
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
	buyAll(t, postgres.NewSubmissions(pgtest.Pool(t, withParameter(t, databaseURL, "options", "-crole="+role))))
}

func TestSubmissionsInEveryWayOfSendingQueries(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			buyAll(t, postgres.NewSubmissions(pgtest.Pool(t, withParameter(t, pgtest.URL(t), "default_query_exec_mode", mode))))
		})
	}
}
