package statement_test

import (
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
