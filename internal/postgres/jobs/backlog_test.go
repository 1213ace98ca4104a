package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/config"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

func TestBacklog_EmptyTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	got, err := jobs.New(db.Pool).Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(poller.Backlog{}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBacklog_NothingDue(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Insert("job_1", -time.Hour)
	got, err := jobs.New(db.Pool).Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Pending != 1 || got.Due != 0 || got.OldestDue != 0 || got.OldestPending > time.Minute {
		t.Errorf("got %+v, want one pending, none due, none late", got)
	}
}

// The alarms' descriptions have the ages of config.
func TestBacklog_Thresholds(t *testing.T) {
	t.Parallel()
	for column, age := range map[string]time.Duration{"failing_since": config.FailingAfter, "created_at": config.StuckAfter} {
		want := fmt.Sprintf("%s < now() - interval '%d minutes'", column, age/time.Minute)
		if !strings.Contains(jobs.BacklogSQL, want) {
			t.Errorf("backlog.sql does not say %s", want)
		}
	}
}
