package main

import (
	"fmt"
	"strings"

	"sumepoller/internal/bench/report"
)

// measured is the README's part on figures.
func measured(r *report.Report, costs string) string {
	var b strings.Builder
	m := r.Section("throughput").Machine
	fmt.Fprintf(&b, "## Measured\n\n`make bench` on %d cores (%s, %s), %s, %s, commit %s, %s; each figure the median of %d interleaved runs, its spread in `bench.json`.\n\n",
		m.Cores, m.CPU, m.System, m.Go, m.Postgres, m.Commit, r.Section("throughput").Taken.Format("2 January 2006"), len(r.Section("throughput").Figures[0].Values))
	b.WriteString("![Delay from finished to known against jobs a day](docs/detection.svg)\n\n")
	days(&b, r.Section("detection"))
	speeds(&b, r)
	rest(&b, r)
	fmt.Fprintf(&b, "\n%s\n\\* over the allowance of 10,000 reads a day. Three-minute renders; arithmetic and prices in [docs/cost.md](docs/cost.md).\n", costs)
	return b.String()
}

// days is the table of simulated days.
func days(b *strings.Builder, s *report.Section) {
	b.WriteString("| jobs a day | reads a finished job | p50 | p99 | a fixed 15 s: p50 | p99 |\n|---:|---:|---:|---:|---:|---:|\n")
	for _, jobs := range mixedLoads {
		ours, fixed := sceneName(jobs, mixed, late, 0), sceneName(jobs, mixed, late, fixedInterval)
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s |\n", jobs, report.Number(s.Median(ours+"reads a finished job")),
			span(s.Median(ours+"p50")), span(s.Median(ours+"p99")), span(s.Median(fixed+"p50")), span(s.Median(fixed+"p99")))
	}
	forgotten, over := most(s, "forgotten"), most(s, "reads over the allowance")
	fmt.Fprintf(b, "\nRenders of 1, 3, 8 and 20 minutes, ticks 60 to 119 s apart, in simulated time. "+
		"Jobs forgotten on any of these days: %s; reads over the allowance: %s.\n\n", report.Number(forgotten), report.Number(over))
}

// most is the largest value of a figure over all days of ours.
func most(s *report.Section, figure string) (v float64) {
	for _, day := range scenes() {
		if f := s.Figure(day.name + figure); f != nil && day.Fixed == 0 {
			v = max(v, f.Most)
		}
	}
	return v
}

// span writes seconds as people say them.
func span(seconds float64) string {
	switch {
	case seconds >= 7200:
		return report.Number(seconds/3600) + " h"
	case seconds >= 120:
		return report.Number(seconds/60) + " min"
	}
	return report.Number(seconds) + " s"
}

// speeds is the table of reads a second.
func speeds(b *strings.Builder, r *report.Report) {
	b.WriteString("| reads a second, answers after | this poller | held-lock loop | no database | at 0.145 of a core |\n|---|---:|---:|---:|---:|\n")
	s, small := r.Section("throughput"), r.Section("limited")
	for _, t := range throughputSettings {
		name := t.String() + ": "
		limited := "not measured"
		if v := small.Median(name + "ours"); v > 0 {
			limited = report.Number(v)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", t, report.Number(s.Median(name+"ours")), report.Number(s.Median(name+"held-lock loop")),
			report.Number(s.Median(name+"no database")), limited)
	}
	b.WriteString("\n")
}

// rest is a sentence for each further figure that leads.
func rest(b *strings.Builder, r *report.Report) {
	s, claims, snap := r.Section("throughput"), r.Section("claims"), r.Section("snapshot")
	idle, boxes := r.Section("idle"), r.Section("sandboxes")
	name := mainSetting.String() + ": "
	n := func(s *report.Section, figure string) string { return report.Number(s.Median(figure)) }
	fmt.Fprintf(b, "- At %s: %s times the held-lock loop, %s of the same reads with no database, %s statements, %s bytes of WAL, %s buffers and %s µs of execution a read.\n",
		mainSetting, n(s, name+"ours to the held-lock loop"), n(s, name+"ours to no database"), n(s, name+"statements a read"),
		n(s, name+"WAL a read"), n(s, name+"buffers a read"), n(s, name+"execution a read"))
	fmt.Fprintf(b, "- A claim touches %s buffers a row at 10,000 pending rows and %s at 1,000,000; %s under a snapshot held elsewhere (20,000 rows, passes five to ten), at %s of the first passes' speed.\n",
		n(claims, claimName(10_000, "fresh")), n(claims, claimName(1_000_000, "fresh")),
		n(snap, "most buffers a row of a claim, passes five to ten"), n(snap, "passes six to ten to passes one to five"))
	fmt.Fprintf(b, "- Four sandboxes on one table read %s times as much as one, eight %s times; jobs read twice at once: %s.\n",
		n(boxes, "4 sandboxes: to one sandbox"), n(boxes, "8 sandboxes: to one sandbox"),
		report.Number(boxes.Figure("8 sandboxes: jobs read twice at once").Most))
	fmt.Fprintf(b, "- An idle tick takes %s ms (%s ms at 0.145 of a core), %s statements, and leaves no connection. Init %s ms, binary %s MiB, memory %s MiB at rest and %s MiB under load.\n",
		n(idle, "idle tick, warm"), n(idle, "0.145 of a core: idle tick, warm"), n(idle, "idle tick: statements"), n(idle, "init"),
		n(idle, "size of the binary, arm64"), n(idle, "memory at rest"), n(idle, "memory under load, 64 in flight"))
	fmt.Fprintf(b, "- A row that becomes due during a run is read %s ms later (p99 %s ms), never early.\n",
		n(idle, "a row due every 50 ms: p50 late"), n(idle, "a row due every 50 ms: p99 late"))
}
