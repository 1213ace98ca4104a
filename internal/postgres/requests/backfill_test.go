package requests_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
)

// everyKind seeds one row of each kind that a backfill distinguishes.
const everyKind = `
INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, leased_until, lease_id, lost_leases, polls, consecutive_errors,
                        failing_since, last_error, finished_at, sume_status, final_status) VALUES
 ('done',     'completed', now() - interval '1 day',   now() - interval '5 days', '-infinity', gen_random_uuid(), 0, 7, 0, NULL, 'old', now() - interval '1 day', 'completed', '{"a": 1}'),
 ('failed_1', 'failed',    now() - interval '1 day',   now() - interval '4 days', '-infinity', gen_random_uuid(), 3, 8, 0, NULL, 'old', now() - interval '1 day', 'failed', '{"a": 2}'),
 ('failed_2', 'failed',    now() - interval '1 day',   now() - interval '2 days', '-infinity', gen_random_uuid(), 0, 9, 4, now(), 'x', now() - interval '1 day', 'failed', '{"a": 3}'),
 ('adopted',  'failed',    now() - interval '1 day',   NULL,                      '-infinity', gen_random_uuid(), 0, 1, 0, NULL, NULL, NULL, NULL, NULL),
 ('backoff',  'pending',   now() + interval '1 hour',  now() - interval '3 days', '-infinity', gen_random_uuid(), 0, 2, 5, now(), 'http_5xx 503', NULL, NULL, NULL),
 ('later',    'pending',   now() + interval '1 hour',  now() - interval '1 day',  '-infinity', gen_random_uuid(), 0, 2, 0, NULL, NULL, NULL, NULL, NULL),
 ('due',      'pending',   now() - interval '1 hour',  now() - interval '1 day',  '-infinity', gen_random_uuid(), 0, 0, 0, NULL, NULL, NULL, NULL, NULL),
 ('leased',   'pending',   now() - interval '1 minute', now() - interval '1 day', now() + interval '30 s', gen_random_uuid(), 1, 0, 1, now(), 'timeout', NULL, NULL, NULL)`

func at(db *table, offset string) *time.Time {
	v := pgtest.Value[time.Time](db.DB, `SELECT now() + $1::text::interval`, offset)
	return &v
}

func TestBackfill_Selection(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		request func(db *table) operator.Backfill
		want    operator.Backfilled
		moved   []string // ids whose row changed or came
	}{
		"ids: new, finished, later and due ones": {
			func(*table) operator.Backfill {
				return operator.Backfill{JobIDs: []string{"new", "done", "later", "due", "leased"}}
			},
			operator.Backfilled{Registered: 1, Reopened: 2},
			[]string{"done", "later", "new"},
		},
		"states, also without created_at": {
			func(*table) operator.Backfill { return operator.Backfill{States: []string{"failed", "stopped"}} },
			operator.Backfilled{Reopened: 3, Note: `no finished row is in state "stopped"; states in the table: failed 3, completed 1`},
			[]string{"adopted", "failed_1", "failed_2"},
		},
		"states in a window, its start within": {
			func(db *table) operator.Backfill {
				after := pgtest.Value[time.Time](db.DB, `SELECT created_at FROM video_jobs WHERE job_id = 'failed_1'`)
				before := pgtest.Value[time.Time](db.DB, `SELECT created_at FROM video_jobs WHERE job_id = 'failed_2'`)
				return operator.Backfill{States: []string{"failed", "completed"}, CreatedAfter: &after, CreatedBefore: &before}
			},
			operator.Backfilled{Reopened: 1},
			[]string{"failed_1"},
		},
		"a window does not narrow ids": {
			func(db *table) operator.Backfill {
				return operator.Backfill{JobIDs: []string{"adopted"}, States: []string{"failed"}, CreatedAfter: at(db, "-3 days")}
			},
			operator.Backfilled{Reopened: 2},
			[]string{"adopted", "failed_2"},
		},
		"overdue": {
			func(*table) operator.Backfill { return operator.Backfill{Overdue: true} },
			operator.Backfilled{Reopened: 1},
			[]string{"backoff"},
		},
		"overdue outside its window": {
			func(db *table) operator.Backfill {
				return operator.Backfill{Overdue: true, CreatedAfter: at(db, "-2 days")}
			},
			operator.Backfilled{},
			nil,
		},
		"a limit takes the oldest first": {
			func(*table) operator.Backfill {
				return operator.Backfill{States: []string{"failed", "completed"}, Overdue: true, Limit: 3}
			},
			operator.Backfilled{Reopened: 3},
			[]string{"adopted", "done", "failed_1"},
		},
		"a limit over ids": {
			func(*table) operator.Backfill {
				return operator.Backfill{JobIDs: []string{"new_2", "new_1", "failed_2"}, Limit: 2}
			},
			operator.Backfilled{Registered: 1, Reopened: 1},
			[]string{"failed_2", "new_1"},
		},
		"a state that no row has": {
			func(*table) operator.Backfill { return operator.Backfill{States: []string{"expired"}} },
			operator.Backfilled{Note: `no finished row is in state "expired"; states in the table: failed 3, completed 1`},
			nil,
		},
		"everything at once": {
			func(*table) operator.Backfill {
				return operator.Backfill{JobIDs: []string{"new", "failed_1", "backoff"}, States: []string{"failed"}, Overdue: true}
			},
			operator.Backfilled{Registered: 1, Reopened: 4},
			[]string{"adopted", "backoff", "failed_1", "failed_2", "new"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.Exec(everyKind)
			request := c.request(db)
			db.Exec(`CREATE TABLE before AS SELECT v.job_id, v::text AS line FROM video_jobs v`)
			sum := db.checksum()

			dry := request
			dry.DryRun = true
			if got := db.backfill(dry, time.Second); got != c.want {
				t.Errorf("dry run counts %+v, want %+v", got, c.want)
			}
			if db.checksum() != sum {
				t.Error("a dry run changed rows")
			}
			if got := db.backfill(request, time.Second); got != c.want {
				t.Errorf("backfill did %+v, want %+v", got, c.want)
			}
			changed := db.Strings(`SELECT v.job_id FROM video_jobs v LEFT JOIN before b ON b.job_id = v.job_id
				WHERE b.line IS DISTINCT FROM v::text ORDER BY v.job_id`)
			if diff := cmp.Diff(c.moved, changed, cmpEmpty); diff != "" {
				t.Errorf("changed rows (-want +got):\n%s", diff)
			}
			if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE job_id = ANY ($1) AND state = 'pending' AND next_poll_at <= now()`, changed); n != len(changed) {
				t.Errorf("%d of %d changed rows are pending and due", n, len(changed))
			}
		})
	}
}

var cmpEmpty = cmp.Transformer("empty", func(s []string) string { return fmt.Sprint(s) })

func TestBackfill_History(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(everyKind)
	kept := `SELECT concat_ws('|', job_id, created_at, polls, last_error, sume_status, final_status, leased_until) FROM video_jobs ORDER BY job_id`
	before := db.Strings(kept)
	lease := pgtest.Value[string](db.DB, `SELECT lease_id::text FROM video_jobs WHERE job_id = 'leased'`)
	db.backfill(operator.Backfill{JobIDs: []string{"leased"}, States: []string{"failed", "completed"}, Overdue: true}, time.Second)

	if diff := cmp.Diff(before, db.Strings(kept)); diff != "" {
		t.Errorf("history (-before +after):\n%s", diff)
	}
	if got := pgtest.Value[string](db.DB, `SELECT lease_id::text FROM video_jobs WHERE job_id = 'leased'`); got != lease {
		t.Errorf("lease %s, want %s as before", got, lease)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE job_id IN ('done', 'failed_1', 'failed_2', 'adopted')
		AND finished_at IS NULL AND failing_since IS NULL AND consecutive_errors = 0 AND lost_leases = 0
		AND lease_id = '00000000-0000-0000-0000-000000000000'`); n != 4 {
		t.Errorf("%d of 4 reopened rows start afresh", n)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE job_id = 'backoff' AND consecutive_errors = 5 AND failing_since IS NOT NULL`); n != 1 {
		t.Error("an overdue row lost its count of errors")
	}
}

func TestBackfill_Pace(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	ids := pgtest.Names("job_", 150)
	request := operator.Backfill{JobIDs: ids}
	db.backfill(request, 2*time.Second)

	base := pgtest.Value[time.Time](db.DB, `SELECT next_poll_at FROM video_jobs WHERE job_id = $1`, ids[0])
	for i, id := range ids {
		want := base.Add(time.Duration(max(i-99, 0)) * 2 * time.Second)
		if got := pgtest.Value[time.Time](db.DB, `SELECT next_poll_at FROM video_jobs WHERE job_id = $1`, id); !got.Equal(want) {
			t.Fatalf("row %d is due at %v, want %v", i+1, got, want)
		}
	}
	sum := db.checksum()
	if got := db.backfill(request, 2*time.Second); got != (operator.Backfilled{}) || db.checksum() != sum {
		t.Errorf("asked again it did %+v", got)
	}
	db.backfill(request, time.Hour)
	if db.checksum() != sum {
		t.Error("asked again at a slower rate it moved rows")
	}
	if got := db.backfill(request, time.Second); got.Reopened != 50 {
		t.Errorf("asked again at a faster rate it moved %d rows, want 50", got.Reopened)
	}
}
