package statement_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"sumepoller/internal/postgres/statement"
)

func TestRead(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"list.sql":   {Data: []byte("-- Lists jobs.\nSELECT job_id, {age v.created_at} -- seconds\nFROM video_jobs v\n    -- All of them.\nWHERE {due}\n")},
		"age.sql":    {Data: []byte("-- An age.\n{second} - {column}\n")},
		"second.sql": {Data: []byte("now()\n")},
	}
	const want = "SELECT job_id, now() - v.created_at -- seconds\nFROM video_jobs v\nWHERE state = 'pending' AND next_poll_at <= now()"
	if got := statement.Read(files, "list"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	const sql = `SELECT @limit::bigint, @id::text, @limit::bigint`
	for _, id := range []string{"job_1", "job_2"} {
		got, args, err := statement.Args{"id": id, "limit": 5}.RewriteQuery(t.Context(), nil, sql, nil)
		if want := `SELECT $1::bigint, $2::text, $1::bigint`; err != nil || got != want || !slices.Equal(args, []any{5, id}) {
			t.Errorf("got %s, %v, %v, want %s", got, args, err, want)
		}
	}
	for _, args := range []statement.Args{{"id": "job_1"}, {"limit": 5, "ID": "job_1"}} {
		if _, _, err := args.RewriteQuery(t.Context(), nil, sql, nil); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
