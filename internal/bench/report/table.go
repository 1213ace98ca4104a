package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Write prints a section as a table: each figure's median with the least and
// the most of its values, then the targets.
func (s *Section) Write(out io.Writer) {
	fmt.Fprintf(out, "\n%s (%.0f s)\n", s.Name, s.Seconds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range s.Figures {
		spread := ""
		if len(f.Values) > 1 {
			spread = fmt.Sprintf("%s … %s", Number(f.Least), Number(f.Most))
		}
		fmt.Fprintf(w, "  %s\t%s %s\t%s\t\n", f.Name, Number(f.Median), f.Unit, spread)
	}
	for _, t := range s.Targets {
		word := "holds"
		if !t.Holds {
			word = "MISSED"
		}
		fmt.Fprintf(w, "  target: %s\t%s\t%s: %s\t\n", t.Name, Number(t.Got), word, t.Bound)
	}
	w.Flush()
	for _, n := range s.Notes {
		fmt.Fprintf(out, "  note: %s\n", n)
	}
}

// Number writes a value with three digits that count, and all before the point.
func Number(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Compare prints how far the ratios and counts of this section lie from those
// of an earlier run of it.
func (s *Section) Compare(out io.Writer, before *Section) {
	if before == nil {
		return
	}
	worst, name, n := 0.0, "", 0
	for _, f := range s.Figures {
		old := before.Figure(f.Name)
		if old == nil || f.Kind != Ratio && f.Kind != Count || f.Median == old.Median {
			continue
		}
		n++
		if d := math.Abs(f.Median-old.Median) / math.Max(math.Abs(old.Median), 1e-9); d > worst {
			worst, name = d, f.Name
		}
	}
	if n > 0 {
		fmt.Fprintf(out, "  against the run of %s: ratios and counts at most %.0f %% apart (%s)\n",
			before.Taken.Format("2006-01-02 15:04"), 100*worst, name)
	}
}
