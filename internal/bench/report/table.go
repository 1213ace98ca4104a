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
	if s.Wide {
		s.writeWide(w)
	} else {
		s.writeLong(w)
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

// writeLong prints a figure a line.
func (s *Section) writeLong(out io.Writer) {
	for _, f := range s.Figures {
		fmt.Fprintf(out, "  %s\t%s %s\t%s\t\n", f.Name, Number(f.Median), f.Unit, f.spread(" … "))
	}
}

// spread is the least and the most of several values.
func (f *Figure) spread(between string) string {
	if f.Least == f.Most {
		return ""
	}
	return Number(f.Least) + between + Number(f.Most)
}

// writeWide prints what a day came to on one line.
func (s *Section) writeWide(out io.Writer) {
	line := ""
	for _, f := range s.Figures {
		at := strings.LastIndex(f.Name, ": ")
		if before := f.Name[:at]; before != line {
			line = before
			fmt.Fprintf(out, "\n  %s", line)
		}
		fmt.Fprintf(out, "\t%s %s", f.Name[at+2:], Number(f.Median))
		if between := f.spread("…"); between != "" {
			fmt.Fprintf(out, " (%s)", between)
		}
	}
	fmt.Fprintln(out)
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
