package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table lays the view out, what matters first.
func (v view) table() string {
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

func (v view) overview(b *strings.Builder) {
	var w strings.Builder
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
		fmt.Fprintf(&w, "%s\t%d%s\n", clean(s), v.States[s], note)
	}
	if len(states) == 0 {
		fmt.Fprintln(&w, "no jobs\t")
	}
	fmt.Fprintf(&w, "\t\ndue now\t%d%s\n", v.Due, after(v.Due > 0, "the oldest for "+span(v.OldestDueSeconds)))
	fmt.Fprintf(&w, "being read\t%d\n", v.Leased)
	fmt.Fprintf(&w, "failing\t%d\n", v.FailingTotal)
	fmt.Fprintf(&w, "older than a day\t%d\n", v.LongRunningTotal)
	left := "no daily limit"
	if v.ReadsLeft != nil {
		left = strconv.Itoa(*v.ReadsLeft) + " left today"
	}
	fmt.Fprintf(&w, "reads today\t%d, %s\n", v.ReadsToday, left)
	fmt.Fprintf(&w, "unfinished submissions\t%d%s\n", v.SubmissionsTotal,
		after(v.SubmissionsStuck > 0, strconv.Itoa(v.SubmissionsStuck)+" for over ten minutes or unrecorded"))
	align(b, w.String())
}

// due lists what waits to be claimed. A row that stays here while others are
// read cannot be claimed, or its lease is lost again and again.
func (v view) due(b *strings.Builder) {
	if len(v.OldestDue) == 0 {
		return
	}
	b.WriteString("\nDUE (the oldest first)\n")
	var w strings.Builder
	fmt.Fprintln(&w, "JOB\tDUE FOR\tLAST READ\tLEASED\tLOST LEASES")
	for _, j := range v.OldestDue {
		leased := "-"
		if j.LeasedUntil != nil {
			leased = "ends " + v.until(j.LeasedUntil)
		}
		fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%d\n", clean(j.JobID), span(j.DueSeconds), ago(v.since(j.LastPolledAt)), leased, j.LostLeases)
	}
	align(b, w.String())
}

func (v view) longRunning(b *strings.Builder) {
	if len(v.LongRunning) == 0 {
		return
	}
	fmt.Fprintf(b, "\nOLDER THAN A DAY (%d of %d, the oldest first; make stop JOB=... ends the polling of one)\n", len(v.LongRunning), v.LongRunningTotal)
	var w strings.Builder
	fmt.Fprintln(&w, "JOB\tAGE\tREADS\tSUME SAYS\tNEXT READ")
	for _, j := range v.LongRunning {
		fmt.Fprintf(&w, "%s\t%s\t%d\t%s\t%s\n", clean(j.JobID), span(j.AgeSeconds), j.Polls, word(j.SumeStatus), v.until(j.NextPollAt))
	}
	align(b, w.String())
}

func (v view) failing(b *strings.Builder) {
	if len(v.Failing) == 0 {
		return
	}
	fmt.Fprintf(b, "\nFAILING (%d of %d, the longest first)\n", len(v.Failing), v.FailingTotal)
	var w strings.Builder
	fmt.Fprintln(&w, "JOB\tFAILING FOR\tERRORS\tNEXT READ\tLAST ERROR")
	for _, j := range v.Failing {
		fmt.Fprintf(&w, "%s\t%s\t%d\t%s\t%s\n", clean(j.JobID), v.since(j.FailingSince), j.ConsecutiveErrors, v.until(j.NextPollAt), word(j.LastError))
	}
	align(b, w.String())
}

func (v view) submissions(b *strings.Builder) {
	if len(v.Submissions) == 0 {
		return
	}
	fmt.Fprintf(b, "\nUNFINISHED SUBMISSIONS (%d of %d, the oldest first; submit again with the same key)\n", len(v.Submissions), v.SubmissionsTotal)
	var w strings.Builder
	fmt.Fprintln(&w, "IDEMPOTENCY KEY\tSTATE\tJOB\tAGE\tLAST ERROR")
	for _, s := range v.Submissions {
		fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%s\n", clean(s.IdempotencyKey), word(&s.State), word(s.JobID), span(float64(s.AgeSeconds)), word(s.LastError))
	}
	align(b, w.String())
}

func (v view) jobs(b *strings.Builder) {
	if len(v.Jobs) == 0 {
		return
	}
	b.WriteString("\nJOBS\n")
	var w strings.Builder
	fmt.Fprintln(&w, "JOB\tSTATE\tSUME SAYS\tAGE\tREADS\tLAST READ\tNEXT READ\tFINISHED\tERRORS\tLAST ERROR")
	for _, j := range v.Jobs {
		next := v.until(j.NextPollAt)
		switch {
		case j.State != "pending":
			next = "-"
		case j.LeasedUntil != nil:
			next = "being read"
		}
		fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%s\n", clean(j.JobID), clean(j.State), word(j.SumeStatus), v.since(j.CreatedAt), j.Polls,
			ago(v.since(j.LastPolledAt)), next, ago(v.since(j.FinishedAt)), j.ConsecutiveErrors, word(j.LastError))
	}
	align(b, w.String())
}

// align writes lines whose cells end with a tab as columns.
func align(b *strings.Builder, lines string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte(lines)) // into memory
	_ = w.Flush()
}

func after(yes bool, more string) string {
	if !yes {
		return ""
	}
	return ", " + more
}

func (v view) since(t *time.Time) string {
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

func (v view) until(t *time.Time) string {
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

// clean keeps what a user's table may hold from moving a terminal's cursor or
// a column.
func clean(s string) string {
	quoted := strconv.Quote(s)
	if quoted[1:len(quoted)-1] == s && s != "" {
		return s
	}
	return quoted
}
