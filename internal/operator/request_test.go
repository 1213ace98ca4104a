package operator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	before := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	scheduled := operator.Request{}
	backfill := func(b operator.Backfill) operator.Request {
		return operator.Request{Mode: operator.ModeBackfill, Backfill: &b}
	}
	cases := map[string]struct {
		payload string
		want    operator.Request
	}{
		"no payload":      {"", scheduled},
		"white space":     {" \n", scheduled},
		"null":            {" null ", scheduled},
		"an empty object": {"{ }", scheduled},
		"an event":        {`{"detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": "x"}`, scheduled},
		"everything of a backfill": {
			`{"backfill": {"job_ids": ["job_1", "job_2", "job_1"], "states": ["failed"], "overdue": true,
			  "created_after": "2026-11-01T00:00:00Z", "created_before": "2026-11-02T02:00:00+02:00",
			  "limit": 1000, "reads_per_minute": 60, "dry_run": true}}`,
			backfill(operator.Backfill{
				JobIDs: []string{"job_1", "job_2"}, States: []string{"failed"}, Overdue: true,
				CreatedAfter: &after, CreatedBefore: &before, Limit: 1000, ReadsPerMinute: 60, DryRun: true,
			}),
		},
		"ids to the letter": {
			`{"backfill": {"job_ids": [" a", "...", "x/y", "\u00e9", "` + strings.Repeat("j", 512) + `"]}}`,
			backfill(operator.Backfill{JobIDs: []string{" a", "...", "x/y", "é", strings.Repeat("j", 512)}}),
		},
		"inspect alone":    {`{"inspect": {}}`, operator.Request{Mode: operator.ModeInspect, Inspect: &operator.Inspect{}}},
		"inspect with ids": {`{"inspect": {"job_ids": ["a"], "limit": 3}}`, operator.Request{Mode: operator.ModeInspect, Inspect: &operator.Inspect{JobIDs: []string{"a"}, Limit: 3}}},
		"stop":             {`{"stop": {"job_ids": ["a"]}}`, operator.Request{Mode: operator.ModeStop, Stop: &operator.Stop{JobIDs: []string{"a"}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := operator.ParseRequest([]byte(c.payload))
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			sameTime := cmp.Comparer(time.Time.Equal)
			if diff := cmp.Diff(c.want, got, sameTime); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRequestRefusesNamingTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	cases := map[string]struct{ payload, want string }{
		"unknown beside the three":  {`{"backfil": {}}`, "backfil: "},
		"other spelling at the top": {`{"Stop": {"job_ids": ["a"]}}`, "Stop: "},
		"unknown inside":            {`{"stop": {"job_ids": ["a"], "limit": 1}}`, "stop.limit: "},
		"other spelling inside":     {`{"backfill": {"Job_IDs": ["a"]}}`, "backfill.Job_IDs: "},
		"a name that needs quoting": {"{\"backfill\": {\"job\\nids\": 1}}", `backfill."job\nids": `},
		"an empty name":             {`{"stop": {"": 1}}`, `stop."": `},
		"a very long name":          {`{"stop": {"` + long + `": 1}}`, `stop."xxx`},
		"a field twice":             {`{"stop": {"job_ids": ["a"], "job_ids": ["b"]}}`, "stop: "},
		"a field twice, escaped":    {`{"stop": {"job_ids": ["a"], "job\u005fids": ["b"]}}`, "stop: "},
		"two requests":              {`{"inspect": {}, "stop": {"job_ids": ["a"]}}`, "stop: "},
		"work inside an event":      {`{"source": "a", "detail-type": "b", "stop": {"job_ids": ["a"]}}`, "stop: "},
		"half an event":             {`{"detail-type": "b"}`, "detail-type: "},
		"an event of numbers":       {`{"source": 1, "detail-type": "b"}`, "source: "},
		"a null request":            {`{"backfill": null}`, "backfill: "},
		"a list as request":         {`{"stop": ["a"]}`, "stop: "},
		"nothing selected":          {`{"backfill": {"limit": 3, "overdue": false}}`, "backfill: "},
		"empty lists":               {`{"backfill": {"job_ids": [], "states": []}}`, "backfill: "},
		"stop without ids":          {`{"stop": {}}`, "stop.job_ids: "},
		"ids as a text":             {`{"stop": {"job_ids": "a"}}`, "stop.job_ids: "},
		"ids null":                  {`{"stop": {"job_ids": null}}`, "stop.job_ids: "},
		"ids as an object":          {`{"inspect": {"job_ids": {"a": 1}}}`, "inspect.job_ids: "},
		"a null id":                 {`{"backfill": {"job_ids": ["a", null]}}`, "backfill.job_ids[1]: "},
		"a number as id":            {`{"backfill": {"job_ids": ["a", "b", 3]}}`, "backfill.job_ids[2]: "},
		"a blank id":                {`{"backfill": {"job_ids": [""]}}`, "backfill.job_ids[0]: blank"},
		"an id of white space":      {`{"backfill": {"job_ids": ["\u00a0 "]}}`, "backfill.job_ids[0]: blank"},
		"the id .":                  {`{"inspect": {"job_ids": ["."]}}`, "inspect.job_ids[0]: "},
		"the id ..":                 {`{"stop": {"job_ids": ["a", ".."]}}`, "stop.job_ids[1]: "},
		"a NUL in an id":            {`{"stop": {"job_ids": ["a\u0000"]}}`, "stop.job_ids[0]: "},
		"DEL in an id":              {`{"stop": {"job_ids": ["a\u007f"]}}`, "stop.job_ids[0]: "},
		"a C1 control in an id":     {`{"stop": {"job_ids": ["a\u0085b"]}}`, "stop.job_ids[0]: "},
		"half a surrogate pair":     {`{"stop": {"job_ids": ["\udc00"]}}`, "stop.job_ids[0]: "},
		"an id of 513 bytes":        {`{"stop": {"job_ids": ["` + strings.Repeat("é", 256) + `j"]}}`, "stop.job_ids[0]: 513"},
		"pending as a state":        {`{"backfill": {"states": ["failed", "pending"]}}`, "backfill.states[1]: "},
		"a blank state":             {`{"backfill": {"states": [" "]}}`, "backfill.states[0]: "},
		"overdue null":              {`{"backfill": {"overdue": null}}`, "backfill.overdue: "},
		"overdue one":               {`{"backfill": {"overdue": 1}}`, "backfill.overdue: "},
		"limit zero":                {`{"backfill": {"overdue": true, "limit": 0}}`, "backfill.limit: must be at least 1"},
		"limit negative":            {`{"backfill": {"overdue": true, "limit": -5}}`, "backfill.limit: must be at least 1"},
		"limit as a text":           {`{"backfill": {"overdue": true, "limit": "5"}}`, "backfill.limit: "},
		"limit null":                {`{"backfill": {"overdue": true, "limit": null}}`, "backfill.limit: "},
		"limit a fraction":          {`{"backfill": {"overdue": true, "limit": 5.5}}`, "backfill.limit: must be a whole"},
		"limit past every table":    {`{"inspect": {"limit": 99999999999999999999}}`, "inspect.limit: must be at most"},
		"rate below one":            {`{"backfill": {"overdue": true, "reads_per_minute": 0.9}}`, "backfill.reads_per_minute: must be at least 1"},
		"no such day":               {`{"backfill": {"overdue": true, "created_after": "2026-02-30T00:00:00Z"}}`, "backfill.created_after: "},
		"a time without an offset":  {`{"backfill": {"overdue": true, "created_before": "2026-02-03T00:00:00"}}`, "backfill.created_before: "},
		"times the same":            {`{"backfill": {"overdue": true, "created_after": "2026-02-03T01:00:00+01:00", "created_before": "2026-02-03T00:00:00Z"}}`, "backfill.created_after: "},
		"a list":                    {`[]`, "payload: want an object, got a list"},
		"a text":                    {`"backfill"`, "payload: "},
		"true":                      {`true`, "payload: "},
		"cut off":                   {`{"stop": {"job_ids": ["a"`, "payload: is cut off"},
		"words":                     {"stop job_1\n", "payload: is not JSON"},
		"two values":                {`{} {}`, "payload: holds something after"},
		"bytes that are no text":    {"{\"stop\": {\"job_ids\": [\"\xff\"]}}", "payload: not UTF-8"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := operator.ParseRequest([]byte(c.payload))
			if err == nil {
				t.Fatalf("accepted as %+v", got)
			}
			if !strings.HasPrefix(err.Error(), c.want) || !isOneLine(err) {
				t.Errorf("error %q, want one line that begins with %q", err, c.want)
			}
			if diff := cmp.Diff(operator.Request{}, got); diff != "" {
				t.Errorf("a refused payload left something behind:\n%s", diff)
			}
		})
	}
}

func isOneLine(err error) bool {
	s := err.Error()
	return s != "" && len(s) < 300 && !strings.ContainsAny(s, "\n\r")
}

func TestParseRequestTooManyIDsToShow(t *testing.T) {
	t.Parallel()
	ids := strings.TrimSuffix(strings.Repeat(`"a",`, operator.MaxInspectRows+1), ",")
	if _, err := operator.ParseRequest([]byte(`{"inspect": {"job_ids": [` + ids + `]}}`)); err != nil {
		t.Errorf("one id many times refused: %v", err)
	}
	var b strings.Builder
	for i := range operator.MaxInspectRows + 1 {
		b.WriteString(`,"` + strings.Repeat("j", i%500+1) + string(rune('a'+i/500)) + `"`)
	}
	_, err := operator.ParseRequest([]byte(`{"inspect": {"job_ids": [` + b.String()[1:] + `]}}`))
	if err == nil || !strings.HasPrefix(err.Error(), "inspect.job_ids: ") {
		t.Errorf("error %v, want one about inspect.job_ids", err)
	}
}

// The example payloads are those of the documentation and of the tests that
// run the built function.
func TestParseRequestExamples(t *testing.T) {
	t.Parallel()
	for folder, wantRefused := range map[string]bool{"payloads": false, "refused": true} {
		files, err := filepath.Glob(filepath.Join("..", "..", "functions", "poller", "testdata", folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples in %s: %v", folder, err)
		}
		for _, file := range files {
			t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				payload, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := operator.ParseRequest(payload); (err != nil) != wantRefused {
					t.Errorf("error %v, want refused %v", err, wantRefused)
				}
			})
		}
	}
}

func TestBackfillPace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rate, perMinute, perDay int
		want                    time.Duration
	}{
		"its own rate":            {60, 120, 10000, time.Second},
		"the day binds":           {0, 120, 10000, 8640 * time.Millisecond},
		"the minute binds":        {0, 2, 10000, 30 * time.Second},
		"no limit a day":          {0, 120, 0, 500 * time.Millisecond},
		"no limit a minute":       {0, 0, 86400, time.Second},
		"no limit at all":         {0, 0, 0, time.Second},
		"its own rate, no limits": {6000, 0, 0, 10 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := operator.Backfill{ReadsPerMinute: c.rate}
			if got := b.Pace(c.perMinute, c.perDay); got != c.want {
				t.Errorf("Pace(%d, %d) = %v, want %v", c.perMinute, c.perDay, got, c.want)
			}
		})
	}
}
