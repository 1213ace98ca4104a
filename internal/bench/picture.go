package main

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// The picture, in pixels. Both axes are logarithmic. The white background keeps
// it readable on a dark page.
const (
	width, height              = 720, 430
	left, right, top, bottom   = 70, 700, 95, 380
	jobsMin, jobsMax           = 45, 5_500
	delayMin, delayMax         = 4, 140_000 // seconds
	planned, fixedGrey, dashes = "#1f5fa8", "#777777", ` stroke-dasharray="6 4"`
)

var (
	jobTicks   = []float64{50, 150, 500, 1500, 5000}
	delayTicks = []struct {
		seconds float64
		label   string
	}{{5, "5 s"}, {15, "15 s"}, {60, "1 min"}, {300, "5 min"}, {1800, "30 min"}, {7200, "2 h"}, {36_000, "10 h"}, {86_400, "1 day"}}
)

// draw draws how soon the end of a job is known, by jobs a day.
func draw(s *scene, path string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="13" fill="#222222">`+"\n", width, height)
	fmt.Fprintf(&b, `<title>Delay from finished at Sume to known here, by jobs a day</title><rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="26" font-size="16" font-weight="bold">How late the end of a job is known, by jobs a day</text>`+"\n", left)
	for _, jobs := range jobTicks {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#e0e0e0"/><text x="%.1[1]f" y="%[4]d" text-anchor="middle">%.0[5]f</text>`+"\n", x(jobs), top, bottom, bottom+20, jobs)
	}
	for _, t := range delayTicks {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#e0e0e0"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y(t.seconds), right, left-8, y(t.seconds)+4, t.label)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">jobs a day</text>`+"\n", (left+right)/2, height-10)
	for i, curve := range []struct {
		name, figure, color, dash string
		fixed                     bool
	}{
		{"this poller, median", "p50", planned, "", false},
		{"this poller, 99 %", "p99", planned, dashes, false},
		{"fixed interval of 15 s, median", "p50", fixedGrey, "", true},
		{"fixed interval of 15 s, 99 %", "p99", fixedGrey, dashes, true},
	} {
		points := make([]string, len(jobsADay))
		for n, jobs := range jobsADay {
			points[n] = fmt.Sprintf("%.1f %.1f", x(float64(jobs)), y(s.median(dayName(jobs, curve.fixed)+curve.figure)))
		}
		style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="2.5"%s`, curve.color, curve.dash)
		fmt.Fprintf(&b, `<path d="M%s" %s/>`+"\n", strings.Join(points, "L"), style)
		legendX, legendY := left+i/2*260, 50+i%2*20
		fmt.Fprintf(&b, `<path d="M%d %dh32" %s/><text x="%d" y="%d">%s</text>`+"\n", legendX, legendY, style, legendX+40, legendY+4, curve.name)
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// x is the position of a number of jobs a day.
func x(jobs float64) float64 {
	return left + (right-left)*math.Log(jobs/jobsMin)/math.Log(float64(jobsMax)/jobsMin)
}

// y is the position of a delay.
func y(seconds float64) float64 {
	return bottom - (bottom-top)*math.Log(max(seconds, delayMin)/delayMin)/math.Log(float64(delayMax)/delayMin)
}
