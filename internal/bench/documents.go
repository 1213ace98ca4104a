package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sumepoller/internal/bench/cost"
	"sumepoller/internal/bench/picture"
	"sumepoller/internal/bench/report"
)

// allowance is the API's, of reads a day.
const allowance = 10_000

// documents makes from the report what the README shows: the picture, the
// costs with their arithmetic, the figures that lead. A part whose sections
// were never taken is left out, and told.
func documents(r *report.Report, root string) error {
	docs := filepath.Join(root, "docs")
	missing := ""
	for _, s := range sections {
		if r.Section(s.name) == nil {
			missing += " " + s.name
		}
	}
	if missing != "" {
		fmt.Printf("\nnot drawn nor computed anew, since bench.json has no section%s\n", missing)
		return nil
	}
	if err := draw(r.Section("detection"), filepath.Join(docs, "detection.svg")); err != nil {
		return err
	}
	costs, table, err := costDocument(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "cost.md"), []byte(costs), 0o644); err != nil {
		return err
	}
	return showInReadme(filepath.Join(root, "README.md"), measured(r, table))
}

// The README's section on what was measured stands between these.
const (
	measuredBegin = "<!-- written by make bench -->\n"
	measuredEnd   = "<!-- as far as here -->\n"
)

// showInReadme puts the text in the place of the one from the run before.
func showInReadme(path, text string) error {
	readme, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(readme), measuredBegin)
	_, after, ended := strings.Cut(rest, measuredEnd)
	if !found || !ended {
		return fmt.Errorf("%s: no place for what was measured; want the lines %q and %q", path, measuredBegin, measuredEnd)
	}
	return os.WriteFile(path, []byte(before+measuredBegin+strings.TrimRight(text, "\n")+"\n"+measuredEnd+after), 0o644)
}

func draw(s *report.Section, path string) error {
	var curves []picture.Curve
	for _, fixed := range []time.Duration{fixedInterval, 0} {
		for _, share := range []string{"p99", "p50"} {
			c := picture.Curve{Name: "this poller, " + share, Ours: fixed == 0, Dashed: share == "p99"}
			if fixed > 0 {
				c.Name = fmt.Sprintf("a fixed interval of %.0f s, %s", fixed.Seconds(), share)
			}
			for _, jobs := range mixedLoads {
				c.Jobs = append(c.Jobs, jobs)
				c.Delays = append(c.Delays, s.Median(sceneName(jobs, mixed, late, fixed)+share))
			}
			curves = append(curves, c)
		}
	}
	return picture.Draw(path, curves)
}

// load is a day of three-minute jobs as the table of costs takes it.
func costLoad(r *report.Report, jobs int) cost.Load {
	days, function := r.Section("detection"), r.Section("idle")
	name := sceneName(jobs, mixed[1:2], punctual, 0)
	tick := function.Median("0.145 of a core: idle tick, warm")
	if tick == 0 {
		tick = function.Median("idle tick, warm")
	}
	return cost.Load{
		Jobs: jobs, Awake: days.Median(name + "awake"), Runs: days.Median(name + "runs"), IdleTick: tick / 1000,
		PerJob: days.Median(name + "reads a finished job"), Render: mixed[1].Seconds(), Interval: fixedInterval.Seconds(), Allowance: allowance,
	}
}

// costDocument returns the document of the costs, and its table alone.
func costDocument(r *report.Report) (document, table string, err error) {
	p, err := cost.LoadPrices()
	if err != nil {
		return "", "", err
	}
	ways := make([][]cost.Way, len(costLoads))
	for i, jobs := range costLoads {
		l := costLoad(r, jobs)
		ways[i] = []cost.Way{p.Ours(l), p.Fargate(l), p.StepFunctions(l), p.SQS(l), p.Schedules(l)}
	}
	around, nat := p.Around(), p.NAT()
	var b, t strings.Builder
	fmt.Fprintf(&t, "| dollars a month | %d jobs a day | %d | %d |\n|---|---:|---:|---:|\n", costLoads[0], costLoads[1], costLoads[2])
	for n := range ways[0] {
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", ways[0][n].Name, sum(ways[0][n]), sum(ways[1][n]), sum(ways[2][n]))
	}
	fmt.Fprintf(&t, "| %s: secrets, metrics, alarms, logs | %[2]s | %[2]s | %[2]s |\n", around.Name, sum(around))
	fmt.Fprintf(&t, "| %s | %[2]s | %[2]s | %[2]s |\n", nat.Name, sum(nat))
	stamp := r.Section("detection")
	fmt.Fprintf(&b, "# What following jobs costs\n\nList prices of %s as of %s: %s\n\n", p.Region, p.AsOf, p.Source)
	fmt.Fprintf(&b, "Jobs render for three minutes; a month has %d days. The awake seconds are those of a simulated day, the tick's those of the binary at 0.145 of a core "+
		"(`make bench`, commit %s). The other ways read each job every 15 s. None of them knows the day's allowance: a star marks where they pass it, and their jobs wait for midnight. "+
		"The database is the one you have.\n\n%s\n## Arithmetic\n", 30, stamp.Machine.Commit, t.String())
	for i, jobs := range costLoads {
		fmt.Fprintf(&b, "\n### %d jobs a day\n\n", jobs)
		for _, w := range ways[i] {
			write(&b, w)
		}
	}
	fmt.Fprint(&b, "\n### Beside it\n\n")
	write(&b, around)
	write(&b, nat)
	return b.String(), t.String(), nil
}

func sum(w cost.Way) string {
	star := ""
	if w.Note != "" {
		star = " *"
	}
	return fmt.Sprintf("%.2f%s", w.Total(), star)
}

func write(b *strings.Builder, w cost.Way) {
	fmt.Fprintf(b, "- **%s: $%.2f**", w.Name, w.Total())
	if w.Note != "" {
		fmt.Fprintf(b, " (%s)", w.Note)
	}
	b.WriteString("\n")
	for _, l := range w.Lines {
		fmt.Fprintf(b, "  - %s = $%.2f\n", l.Arithmetic, l.Dollars)
	}
}
