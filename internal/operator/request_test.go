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
		"whitespace":      {" \n", scheduled},
		"null":            {" null ", scheduled},
		"an empty object": {"{ }", scheduled},
		"an event":        {`{"detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": "x"}`, scheduled},
		"backfill with all fields": {
			`{"backfill": {"job_ids": ["job_1", "job_2", "job_1"], "states": ["failed"], "overdue": true,
			  "created_after": "2026-11-01T00:00:00Z", "created_before": "2026-11-02T02:00:00+02:00",
			  "limit": 1000, "reads_per_minute": 60, "dry_run": true}}`,
			backfill(operator.Backfill{
				JobIDs: []string{"job_1", "job_2"}, States: []string{"failed"}, Overdue: true,
				CreatedAfter: &after, CreatedBefore: &before, Limit: 1000, ReadsPerMinute: 60, DryRun: true,
			}),
		},
		"ids kept verbatim": {
			`{"backfill": {"job_ids": [" a", "...", "x/y", "\u00e9", "` + strings.Repeat("j", 512) + `"]}}`,
			backfill(operator.Backfill{JobIDs: []string{" a", "...", "x/y", "é", strings.Repeat("j", 512)}}),
		},
		"inspect":          {`{"inspect": {}}`, operator.Request{Mode: operator.ModeInspect, Inspect: &operator.Inspect{}}},
		"inspect with ids": {`{"inspect": {"job_ids": ["a"], "limit": 3}}`, operator.Request{Mode: operator.ModeInspect, Inspect: &operator.Inspect{JobIDs: []string{"a"}, Limit: 3}}},
		"stop":             {`{"stop": {"job_ids": ["a"]}}`, operator.Request{Mode: operator.ModeStop, Stop: &operator.Stop{JobIDs: []string{"a"}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := operator.ParseRequest([]byte(c.payload))
			if err != nil {
				t.Fatal(err)
			}
			sameTime := cmp.Comparer(time.Time.Equal)
			if diff := cmp.Diff(c.want, got, sameTime); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRequest_Invalid(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	cases := map[string]struct{ payload, want string }{
		"unknown field":            {`{"backfil": {}}`, "backfil: unknown field; want backfill, inspect or stop"},
		"another spelling":         {`{"Stop": {"job_ids": ["a"]}}`, "Stop: unknown field"},
		"unknown field inside":     {`{"stop": {"job_ids": ["a"], "limit": 1}}`, "stop.limit: unknown field; want job_ids"},
		"another spelling inside":  {`{"backfill": {"Job_IDs": ["a"]}}`, "backfill.Job_IDs: unknown field; want job_ids, states, overdue, "},
		"name that needs quotes":   {"{\"backfill\": {\"job\\nids\": 1}}", `backfill."job\nids": `},
		"empty name":               {`{"stop": {"": 1}}`, `stop."": `},
		"long name":                {`{"stop": {"` + long + `": 1}}`, `stop."xxx`},
		"numeric name":             {`{"stop": {"0": 1}}`, `stop.0: unknown field`},
		"field given twice":        {`{"stop": {"job_ids": ["a"], "job_ids": ["b"]}}`, "stop.job_ids: given twice"},
		"field twice, escaped":     {`{"stop": {"job_ids": ["a"], "job\u005fids": ["b"]}}`, "stop.job_ids: given twice"},
		"backfill and inspect":     {`{"inspect": {}, "backfill": {"overdue": true}}`, "inspect: given together with backfill"},
		"inspect and stop":         {`{"inspect": {}, "stop": {"job_ids": ["a"]}}`, "stop: given together with"},
		"backfill and stop":        {`{"backfill": {"overdue": true}, "stop": {"job_ids": ["a"]}}`, "stop: given together with"},
		"stop inside an event":     {`{"source": "a", "detail-type": "b", "stop": {"job_ids": ["a"]}}`, "stop: inside an EventBridge event"},
		"inspect inside an event":  {`{"source": "a", "detail-type": "b", "inspect": null}`, "inspect: inside an EventBridge event"},
		"backfill inside an event": {`{"source": "a", "detail-type": "b", "backfill": {}}`, "backfill: inside an EventBridge event"},
		"half an event":            {`{"detail-type": "b"}`, "detail-type: unknown field"},
		"event of numbers":         {`{"source": 1, "detail-type": "b"}`, "source: "},
		"null request":             {`{"backfill": null}`, "backfill: want an object, got null"},
		"request is an array":      {`{"stop": ["a"]}`, "stop: want an object, got an array"},
		"nothing selected":         {`{"backfill": {"limit": 3, "overdue": false}}`, "backfill: selects nothing"},
		"empty arrays":             {`{"backfill": {"job_ids": [], "states": []}}`, "backfill: selects nothing"},
		"stop without ids":         {`{"stop": {}}`, "stop.job_ids: selects nothing"},
		"ids are a string":         {`{"stop": {"job_ids": "a"}}`, "stop.job_ids: want an array, got a string"},
		"ids are null":             {`{"stop": {"job_ids": null}}`, "stop.job_ids: want an array, got null"},
		"ids are an object":        {`{"inspect": {"job_ids": {"a": 1}}}`, "inspect.job_ids: want an array, got an object"},
		"id is null":               {`{"backfill": {"job_ids": ["a", null]}}`, "backfill.job_ids[1]: want a string, got null"},
		"id is a number":           {`{"backfill": {"job_ids": ["a", "b", 3]}}`, "backfill.job_ids[2]: want a string, got a number"},
		"id is an array":           {`{"backfill": {"job_ids": [["a"]]}}`, "backfill.job_ids[0]: want a string, got an array"},
		"empty id":                 {`{"backfill": {"job_ids": [""]}}`, "backfill.job_ids[0]: want a string, got an empty one"},
		"id of whitespace":         {`{"backfill": {"job_ids": ["\u00a0 "]}}`, "backfill.job_ids[0]: only whitespace"},
		"id .":                     {`{"inspect": {"job_ids": ["."]}}`, "inspect.job_ids[0]: no job has this id"},
		"id ..":                    {`{"stop": {"job_ids": ["a", ".."]}}`, "stop.job_ids[1]: no job has this id"},
		"id with NUL":              {`{"stop": {"job_ids": ["a\u0000"]}}`, "stop.job_ids[0]: holds a control character"},
		"id with DEL":              {`{"stop": {"job_ids": ["a\u007f"]}}`, "stop.job_ids[0]: holds a control character"},
		"id with a C1 control":     {`{"stop": {"job_ids": ["a\u0085b"]}}`, "stop.job_ids[0]: holds a control character"},
		"id with U+FFFD":           {`{"stop": {"job_ids": ["a\ufffd"]}}`, "stop.job_ids[0]: holds U+FFFD"},
		"id with half a surrogate": {`{"stop": {"job_ids": ["\udc00"]}}`, "stop.job_ids[0]: not JSON: "},
		"id of 513 bytes":          {`{"stop": {"job_ids": ["` + strings.Repeat("é", 256) + `j"]}}`, "stop.job_ids[0]: 513 bytes long"},
		"pending as a state":       {`{"backfill": {"states": ["failed", "pending"]}}`, "backfill.states[1]: pending rows are not finished"},
		"state of whitespace":      {`{"backfill": {"states": [" "]}}`, "backfill.states[0]: only whitespace"},
		"overdue is null":          {`{"backfill": {"overdue": null}}`, "backfill.overdue: want a boolean, got null"},
		"overdue is a number":      {`{"backfill": {"overdue": 1}}`, "backfill.overdue: want a boolean, got a number"},
		"limit is zero":            {`{"backfill": {"overdue": true, "limit": 0}}`, "backfill.limit: want an integer from 1 to 1000000000, got 0"},
		"limit is negative":        {`{"backfill": {"overdue": true, "limit": -5}}`, "backfill.limit: want an integer from 1 to 1000000000, got -5"},
		"limit is a string":        {`{"backfill": {"overdue": true, "limit": "5"}}`, "backfill.limit: want an integer, got a string"},
		"limit is null":            {`{"backfill": {"overdue": true, "limit": null}}`, "backfill.limit: want an integer, got null"},
		"limit is a fraction":      {`{"backfill": {"overdue": true, "limit": 5.5}}`, "backfill.limit: want an integer from 1 to 1000000000, got 5.5"},
		"limit with an exponent":   {`{"backfill": {"overdue": true, "limit": 1e3}}`, "backfill.limit: want an integer from 1 to 1000000000, got 1e3"},
		"limit too large":          {`{"inspect": {"limit": 1000000001}}`, "inspect.limit: want an integer from 1 to 1000000000, got 1000000001"},
		"limit past 64 bits":       {`{"inspect": {"limit": 99999999999999999999}}`, "inspect.limit: want an integer from 1 to 1000000000, got "},
		"rate below one":           {`{"backfill": {"overdue": true, "reads_per_minute": 0.9}}`, "backfill.reads_per_minute: want an integer from 1 to 1000000000, got 0.9"},
		"no such day":              {`{"backfill": {"overdue": true, "created_after": "2026-02-30T00:00:00Z"}}`, "backfill.created_after: want a time of RFC 3339"},
		"time without an offset":   {`{"backfill": {"overdue": true, "created_before": "2026-02-03T00:00:00"}}`, "backfill.created_before: want a time of RFC 3339"},
		"time is a number":         {`{"backfill": {"overdue": true, "created_before": 1}}`, "backfill.created_before: want a string, got a number"},
		"equal times":              {`{"backfill": {"overdue": true, "created_after": "2026-02-03T01:00:00+01:00", "created_before": "2026-02-03T00:00:00Z"}}`, "backfill.created_after: want a time before created_before"},
		"an array":                 {`[]`, "payload: want an object, got an array"},
		"a string":                 {`"backfill"`, "payload: want an object, got a string"},
		"true":                     {`true`, "payload: want an object, got a boolean"},
		"cut off":                  {`{"stop": {"job_ids": ["a"`, "payload: the JSON is cut off"},
		"words":                    {"stop job_1\n", "payload: not JSON"},
		"two values":               {`{} {}`, "payload: not JSON: invalid character '{' after"},
		"not UTF-8":                {"{\"stop\": {\"job_ids\": [\"\xff\"]}}", "payload: not UTF-8"},
		"nested too deeply":        {`{"stop": {"job_ids": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, "stop.job_ids"},
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
				t.Errorf("request returned with the error (-want +got):\n%s", diff)
			}
		})
	}
}

func isOneLine(err error) bool {
	s := err.Error()
	return s != "" && len(s) < 300 && !strings.ContainsAny(s, "\n\r")
}

func TestParseRequest_TooManyIDs(t *testing.T) {
	t.Parallel()
	ids := strings.TrimSuffix(strings.Repeat(`"a",`, operator.MaxInspectRows+1), ",")
	if _, err := operator.ParseRequest([]byte(`{"inspect": {"job_ids": [` + ids + `]}}`)); err != nil {
		t.Errorf("one id many times: %v", err)
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

// The documentation and the tests of the built function use the same examples.
func TestParseRequest_Examples(t *testing.T) {
	t.Parallel()
	for dir, wantError := range map[string]bool{"payloads": false, "refused": true} {
		files, err := filepath.Glob(filepath.Join("..", "..", "functions", "poller", "testdata", dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples in %s: %v", dir, err)
		}
		for _, file := range files {
			t.Run(dir+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				payload, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := operator.ParseRequest(payload); (err != nil) != wantError {
					t.Errorf("got error %v, want an error: %v", err, wantError)
				}
			})
		}
	}
}

func TestBackfill_Pace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rate, perMinute, perDay int
		want                    time.Duration
	}{
		"rate of the request":     {60, 120, 10000, time.Second},
		"daily limit is smaller":  {0, 120, 10000, 8640 * time.Millisecond},
		"minute limit is smaller": {0, 2, 10000, 30 * time.Second},
		"no daily limit":          {0, 120, 0, 500 * time.Millisecond},
		"no minute limit":         {0, 0, 86400, time.Second},
		"no limit":                {0, 0, 0, time.Second},
		"rate without limits":     {6000, 0, 0, 10 * time.Millisecond},
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
