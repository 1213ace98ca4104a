// Package report keeps what a benchmark measured: figures with their spread,
// the targets held against them, and the machine they were taken on. A report
// is one table on the terminal and one JSON file.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Kinds of figures. Ratios and counts hold for every machine of a kind and are
// what two runs must agree on; the others are the machine's own.
const (
	Ratio = "ratio"
	Count = "count"
	Speed = "speed"
	Time  = "time"
	Size  = "size"
)

// Figure is one measured thing: the median of its values and how far they lie
// apart.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Kind   string    `json:"kind"`
	Median float64   `json:"median"`
	Least  float64   `json:"least"`
	Most   float64   `json:"most"`
	Values []float64 `json:"values"` // in the order of the runs
}

// Target is a bound and what was measured against it.
type Target struct {
	Name  string  `json:"name"`
	Bound string  `json:"bound"` // as a person reads it
	Got   float64 `json:"got"`
	Holds bool    `json:"holds"`
}

// Section is one part of a run. Its stamp says when and from what it was taken.
type Section struct {
	Name    string    `json:"name"`
	Taken   time.Time `json:"taken"`
	Seconds float64   `json:"seconds"` // that taking it lasted
	Machine Machine   `json:"machine"`
	Wide    bool      `json:"-"` // printed with a line for what stands before the names' last colon
	Notes   []string  `json:"notes,omitempty"`
	Figures []*Figure `json:"figures"`
	Targets []Target  `json:"targets,omitempty"`
}

// New returns an empty section.
func New(name string) *Section { return &Section{Name: name} }

// Note adds a sentence on how the figures were taken, once.
func (s *Section) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// Take adds a value to the figure of that name.
func (s *Section) Take(name, unit, kind string, value float64) {
	f := s.Figure(name)
	if f == nil {
		f = &Figure{Name: name, Unit: unit, Kind: kind}
		s.Figures = append(s.Figures, f)
	}
	f.Values = append(f.Values, value)
	sorted := slices.Sorted(slices.Values(f.Values))
	f.Least, f.Most = sorted[0], sorted[len(sorted)-1]
	f.Median = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Figure returns the figure of that name, or nil.
func (s *Section) Figure(name string) *Figure {
	for _, f := range s.Figures {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Median returns a figure's median, zero where it was not taken.
func (s *Section) Median(name string) float64 {
	if f := s.Figure(name); f != nil {
		return f.Median
	}
	return 0
}

// AtMost holds the figure's median against an upper bound. A figure that was
// not taken is no target.
func (s *Section) AtMost(name string, bound float64) {
	if f := s.Figure(name); f != nil {
		s.Targets = append(s.Targets, Target{name, fmt.Sprintf("at most %v %s", bound, f.Unit), f.Median, f.Median <= bound})
	}
}

// AtLeast holds the figure's median against a lower bound.
func (s *Section) AtLeast(name string, bound float64) {
	if f := s.Figure(name); f != nil {
		s.Targets = append(s.Targets, Target{name, fmt.Sprintf("at least %v %s", bound, f.Unit), f.Median, f.Median >= bound})
	}
}

// Never holds the largest of the figure's values against an upper bound.
func (s *Section) Never(name string, bound float64) {
	if f := s.Figure(name); f != nil {
		s.Targets = append(s.Targets, Target{name, fmt.Sprintf("never over %v %s", bound, f.Unit), f.Most, f.Most <= bound})
	}
}

// Report is a whole run, or the newest of each of its sections.
type Report struct {
	Sections []*Section `json:"sections"`
}

// Load reads a report; one that does not exist is empty.
func Load(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Report{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// Save writes the report.
func (r *Report) Save(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Section returns the section of that name, or nil.
func (r *Report) Section(name string) *Section {
	for _, s := range r.Sections {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Put puts a section in the place of the one of its name, or behind the others.
func (r *Report) Put(s *Section) {
	for i := range r.Sections {
		if r.Sections[i].Name == s.Name {
			r.Sections[i] = s
			return
		}
	}
	r.Sections = append(r.Sections, s)
}
