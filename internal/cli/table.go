package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sumepoller/internal/operator"
)

// table is an inspection as it is shown to a person.
type table struct{ operator.Inspection }

// String puts first what matters most.
func (v table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s UTC\n\n", v.At.UTC().Format(time.DateTime))
	v.overview(&b)
	v.due(&b)
	v.longRunning(&b)
	v.failing(&b)
	v.submissions(&b)
	v.jobs(&b)
	if len(v.Unknown) > 0 {
		b.WriteString("\nNOT IN THE TABLE\n")
		for _, id := range v.Unknown {
			fmt.Fprintln(&b, clean(id))
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ") // the padding of empty cells
	}
	return strings.Join(lines, "\n")
}

func (v table) overview(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	defer w.Flush()
	note := ""
	if !v.StatesExact {
		note = " at least (a large table is not counted to its end)"
	}
	// Pending first, then the most frequent.
	rank := func(state string) int {
		if state == "pending" {
			return -1
		}
		return 0
	}
	states := slices.SortedFunc(maps.Keys(v.States), func(x, y string) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(v.States[y], v.States[x]), cmp.Compare(x, y))
	})
	for _, s := range states {
		fmt.Fprintf(w, "%s\t%d%s\n", clean(s), v.States[s], note)
	}
	if len(states) == 0 {
		fmt.Fprintln(w, "no jobs\t")
	}
	fmt.Fprintf(w, "\t\ndue now\t%d%s\n", v.Due, after(v.Due > 0, "the oldest for "+span(v.OldestDueSeconds)))
	fmt.Fprintf(w, "being read\t%d\n", v.Leased)
	fmt.Fprintf(w, "failing\t%d\n", v.FailingTotal)
	fmt.Fprintf(w, "older than a day\t%d\n", v.LongRunningTotal)
	left := "no daily limit"
	if v.ReadsLeft != nil {
		left = strconv.Itoa(*v.ReadsLeft) + " left today"
	}
	fmt.Fprintf(w, "reads today\t%d, %s\n", v.ReadsToday, left)
	fmt.Fprintf(w, "unfinished submissions\t%d%s\n", v.SubmissionsTotal,
		after(v.SubmissionsStuck > 0, strconv.Itoa(v.SubmissionsStuck)+" for over ten minutes or unrecorded"))
}

// section writes a list as columns, unless it is empty.
func section[T any](b *strings.Builder, title, heading string, list []T, cells func(T) []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, heading)
	for _, v := range list {
		fmt.Fprintln(w, strings.Join(cells(v), "\t"))
	}
	w.Flush()
}

// due lists the rows that wait to be claimed. A row that stays here while
// others are read cannot be claimed, or loses its lease again and again.
func (v table) due(b *strings.Builder) {
	section(b, "DUE (the oldest first)", "JOB\tDUE FOR\tLAST READ\tLEASED\tLOST LEASES", v.OldestDue, func(j operator.DueJob) []string {
		leased := "-"
		if j.LeasedUntil != nil {
			leased = "ends " + v.until(j.LeasedUntil)
		}
		return []string{clean(j.JobID), span(float64(j.DueSeconds)), ago(v.since(j.LastPolledAt)), leased, strconv.Itoa(j.LostLeases)}
	})
}

func (v table) longRunning(b *strings.Builder) {
	title := fmt.Sprintf("OLDER THAN A DAY (%d of %d, the oldest first; make stop JOB=... ends the polling of one)", len(v.LongRunning), v.LongRunningTotal)
	section(b, title, "JOB\tAGE\tREADS\tSUME SAYS\tNEXT READ", v.LongRunning, func(j operator.LongJob) []string {
		return []string{clean(j.JobID), span(float64(j.AgeSeconds)), strconv.Itoa(j.Polls), word(j.SumeStatus), v.until(j.NextPollAt)}
	})
}

func (v table) failing(b *strings.Builder) {
	title := fmt.Sprintf("FAILING (%d of %d, the longest first)", len(v.Failing), v.FailingTotal)
	section(b, title, "JOB\tFAILING FOR\tERRORS\tNEXT READ\tLAST ERROR", v.Failing, func(j operator.FailingJob) []string {
		return []string{clean(j.JobID), v.since(j.FailingSince), strconv.Itoa(j.ConsecutiveErrors), v.until(j.NextPollAt), word(&j.LastError)}
	})
}

func (v table) submissions(b *strings.Builder) {
	title := fmt.Sprintf("UNFINISHED SUBMISSIONS (%d of %d, the oldest first; submit again with the same key)", len(v.Submissions), v.SubmissionsTotal)
	section(b, title, "IDEMPOTENCY KEY\tSTATE\tJOB\tAGE\tLAST ERROR", v.Submissions, func(s operator.Unfinished) []string {
		return []string{clean(s.IdempotencyKey), word(&s.State), word(s.JobID), span(float64(s.AgeSeconds)), word(s.LastError)}
	})
}

func (v table) jobs(b *strings.Builder) {
	const heading = "JOB\tSTATE\tSUME SAYS\tAGE\tREADS\tLAST READ\tNEXT READ\tFINISHED\tERRORS\tLAST ERROR"
	section(b, "JOBS", heading, v.Jobs, func(j operator.JobRow) []string {
		next := v.until(j.NextPollAt)
		switch {
		case j.State != "pending":
			next = "-"
		case j.LeasedUntil != nil:
			next = "being read"
		}
		return []string{
			clean(j.JobID), clean(j.State), word(j.SumeStatus), v.since(j.CreatedAt), strconv.Itoa(j.Polls),
			ago(v.since(j.LastPolledAt)), next, ago(v.since(j.FinishedAt)), strconv.Itoa(j.ConsecutiveErrors), word(j.LastError),
		}
	})
}

func after(yes bool, more string) string {
	if !yes {
		return ""
	}
	return ", " + more
}

func (v table) since(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return span(v.At.Sub(*t).Seconds())
}

func ago(span string) string {
	if span == "-" {
		return span
	}
	return span + " ago"
}

func (v table) until(t *time.Time) string {
	if t == nil {
		return "never"
	}
	if !t.After(v.At) {
		return "now"
	}
	return "in " + span(t.Sub(v.At).Seconds())
}

// span writes seconds by their two largest units.
func span(seconds float64) string {
	d := int64(max(seconds, 0))
	switch {
	case d < 60:
		return fmt.Sprintf("%ds", d)
	case d < 3600:
		return fmt.Sprintf("%dm%02ds", d/60, d%60)
	case d < 86400:
		return fmt.Sprintf("%dh%02dm", d/3600, d/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", d/86400, d/3600%24)
	}
}

func word(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return clean(*s)
}

// clean quotes a value with characters that would move the terminal's cursor or
// a column.
func clean(s string) string {
	quoted := strconv.Quote(s)
	if quoted[1:len(quoted)-1] == s && s != "" {
		return s
	}
	return quoted
}
