package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what bench.json holds: the latest figures of each scene, by name.
type report map[string]*scene

// scene is one part of the benchmark, with what was measured, when and where.
type scene struct {
	Date    string    `json:"date"`
	Commit  string    `json:"commit"` // ends in + where the code differed from it
	Machine string    `json:"machine"`
	Figures []*figure `json:"figures"`
}

// figure is the median of n values, and the smallest and the largest of them.
type figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
	values []float64
}

func newScene() *scene {
	s := &scene{Date: time.Now().UTC().Format(time.DateOnly), Commit: output("git", "rev-parse", "--short", "HEAD")}
	if s.Commit != "" && output("git", "status", "--porcelain", "--untracked-files=no", "--", "*.go", "*.sql", "go.mod") != "" {
		s.Commit += "+"
	}
	cpu := runtime.GOARCH
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	for line := range strings.Lines(string(info)) {
		if key, model, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			cpu = strings.TrimSpace(model) + ", " + cpu
			break
		}
	}
	s.Machine = fmt.Sprintf("%d cores, %s, %s, %s", runtime.NumCPU(), cpu, runtime.GOOS, runtime.Version())
	return s
}

func output(name string, args ...string) string {
	out, _ := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(out))
}

// add adds a value to the figure of that name.
func (s *scene) add(name, unit string, value float64) {
	f := s.figure(name)
	if f == nil {
		f = &figure{Name: name, Unit: unit}
		s.Figures = append(s.Figures, f)
	}
	f.values = append(f.values, value)
	slices.Sort(f.values)
	f.N = len(f.values)
	f.Min, f.Max = round(f.values[0], 4), round(f.values[f.N-1], 4)
	f.Median = round((f.values[(f.N-1)/2]+f.values[f.N/2])/2, 4)
}

// round keeps so many significant digits.
func round(v float64, digits int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return v
}

// figure returns the figure of that name, or nil.
func (s *scene) figure(name string) *figure {
	for _, f := range s.Figures {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// median returns a figure's median, zero where it was not measured.
func (s *scene) median(name string) float64 {
	if f := s.figure(name); f != nil {
		return f.Median
	}
	return 0
}

// print writes the figures as a table, beside the medians of an earlier run.
func (s *scene) print(out io.Writer, name string, before *scene) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\tmedian\t\tmin\tmax\tbefore\t\n", name)
	for _, f := range s.Figures {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t", f.Name, number(f.Median), f.Unit, number(f.Min), number(f.Max))
		if before != nil && before.figure(f.Name) != nil {
			fmt.Fprint(w, number(before.median(f.Name)))
		}
		fmt.Fprint(w, "\t\n")
	}
	w.Flush()
}

// number writes a value with three significant digits.
func number(v float64) string { return strconv.FormatFloat(round(v, 3), 'f', -1, 64) }

// loadReport reads a report; one that does not exist is empty.
func loadReport(path string) (report, error) {
	r := report{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// save writes the report, one line for each figure.
func (r report) save(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	data = bytes.ReplaceAll(data, []byte(`{"name"`), []byte("\n  {\"name\""))
	data = bytes.ReplaceAll(data, []byte(`]},"`), []byte("]},\n\""))
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
