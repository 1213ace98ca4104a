package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The page shows the figures of bench.json. After a new measurement, copy the
// lines that this test prints into it.
func TestBenchmarksPage_FiguresOfReport(t *testing.T) {
	t.Parallel()
	r, err := loadReport("../../bench.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(data)), " ")
	want := func(format, scene string, figures ...string) {
		t.Helper()
		values := make([]any, len(figures))
		for i, name := range figures {
			f := r[scene].figure(name)
			if f == nil {
				t.Fatalf("bench.json: no figure %q in %s", name, scene)
			}
			values[i] = number(f.Median)
			if f.Unit == "s" {
				values[i] = span(f.Median)
			}
		}
		if line := fmt.Sprintf(format, values...); !strings.Contains(page, line) {
			t.Errorf("docs/benchmarks.md does not say: %s", line)
		}
	}
	for name, s := range r {
		want(fmt.Sprintf("| %s | %s | %s | %s |", name, s.Date, s.Commit, s.Machine), name)
	}
	for _, jobs := range jobsADay {
		n, f := dayName(jobs, false), dayName(jobs, true)
		want(fmt.Sprint("| ", jobs, " | %s | %s | %s | %s | %s |"), "detection", n+"reads a finished job", n+"p50", n+"p99", f+"p50", f+"p99")
	}
	for _, set := range settings {
		n := set.String() + ": "
		want("| "+set.String()+" | %s | %s | %s |", "throughput", n+"poller", n+"held-lock loop", n+"no database")
	}
	n := mainSetting.String() + ": "
	want("%s times as fast as the held-lock loop, and makes %s of the reads", "throughput", n+"poller to held-lock loop", n+"poller to no database")
	want("| statements | %s | %s |", "throughput", n+"statements a read", "held-lock loop: statements a read")
	want("| bytes of WAL | %s | %s |", "throughput", n+"WAL a read", "held-lock loop: WAL a read")
	want("| buffers | %s |", "throughput", n+"buffers a read")
	want("| execution, µs | %s |", "throughput", n+"execution a read")
	for _, rows := range tableRows {
		want(fmt.Sprint("| ", rows, " | %s | %s | %s |"), "claims", claimFigure(rows, 0), claimFigure(rows, passes-1), claimFigure(rows, 2*passes-1))
	}
	for _, f := range []string{"init", "first idle tick", "idle tick"} {
		want("| "+f+", ms | %s |", "idle", f)
	}
	want("sends %s statements", "idle", "idle tick: statements")
	want("for Arm is %s MiB", "idle", "size of the binary, arm64")
	want("%s MiB at rest and %s MiB", "idle", "memory at rest", "memory under load, 64 in flight")
	want("%s times as many", "sandboxes", "4 sandboxes: to one sandbox")
	want("eight make %s times", "sandboxes", "8 sandboxes: to one sandbox")
}

// span writes seconds as a duration.
func span(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < 2*time.Minute:
		return number(seconds) + " s"
	case d < 2*time.Hour:
		return number(seconds/60) + " min"
	}
	return number(seconds/3600) + " h"
}
