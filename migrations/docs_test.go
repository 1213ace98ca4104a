package migrations_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/tables.md lists the columns of video_jobs and video_submissions.
func TestColumns_Documented(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("sql/columns.sql")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/tables.md")
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string][]string{"video_jobs": {"job_id", "state", "next_poll_at"}, "video_submissions": nil} {
		for _, column := range regexp.MustCompile(`'`+table+`',\s+'(\w+)'`).FindAllStringSubmatch(string(list), -1) {
			want = append(want, column[1])
		}
		_, rows, _ := strings.Cut(string(page), "\n## `"+table+"`\n")
		_, rows, _ = strings.Cut(rows, "\n| column | type | default | meaning |\n")
		rows, _, _ = strings.Cut(rows, "\n\n")
		var got []string
		for _, cell := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(rows, -1) {
			for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cell[1], -1) {
				got = append(got, name[1])
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-migrations +docs/tables.md):\n%s", table, diff)
		}
	}
}

// A row that submit inserts is due as late as one that a user inserts.
func TestFirstRead_OneInterval(t *testing.T) {
	t.Parallel()
	const first = "now() + interval '15 seconds'"
	for _, file := range []string{"sql/tables.sql", "sql/add.sql", "sql/trial.sql", "../internal/postgres/submissions/accept.sql"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ReplaceAll(string(text), "''", "'"), first) {
			t.Errorf("%s does not say %s", file, first)
		}
	}
}
