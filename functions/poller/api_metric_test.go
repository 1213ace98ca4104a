package main_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
	"sumepoller/internal/telemetry"
)

// Each run prints one line of metrics, also a run that fails.
func TestMetrics_OneLinePerRun(t *testing.T) {
	t.Parallel()
	const all = 12
	for name, test := range map[string]struct {
		environ []string
		prepare func(*testing.T, *stage)
		run     func(*testing.T, *sandbox)
		metrics int
	}{
		"a normal run": {
			run:     func(t *testing.T, b *sandbox) { b.tick(t) },
			metrics: all,
		},
		"an idle run": {
			prepare: func(t *testing.T, s *stage) { s.exec(t, `DELETE FROM video_jobs`) },
			run:     func(t *testing.T, b *sandbox) { b.tick(t); b.tick(t); b.tick(t) },
			metrics: all,
		},
		"a refused key": {
			prepare: func(_ *testing.T, s *stage) { s.api.SetKeys("another") },
			run:     func(t *testing.T, b *sandbox) { b.fails(t, poller.KindUnauthorized) },
			metrics: all,
		},
		"no secret": {
			prepare: func(_ *testing.T, s *stage) { s.vault.Remove(plantedKeyID) },
			run:     func(t *testing.T, b *sandbox) { b.fails(t, poller.KindSecret) },
			metrics: 5, // the table was not asked
		},
		"no database": {
			environ: []string{config.DatabaseURL + "=postgres://poller:" + plantedPassword + "@127.0.0.1:1/jobs"},
			run:     func(t *testing.T, b *sandbox) { b.fails(t, poller.KindDatabase) },
			metrics: 5,
		},
		"a deadline": {
			prepare: func(_ *testing.T, s *stage) { s.api.SetFault("", sumetest.Fault{Break: sumetest.BreakHang}) },
			run: func(t *testing.T, b *sandbox) {
				if got := b.tick(t); got.Stopped != poller.StoppedBudget {
					t.Errorf("summary %+v", got)
				}
			},
			metrics: all,
		},
		"a refused payload": {
			run: func(t *testing.T, b *sandbox) {
				if got, err := b.Invoke(t.Context(), []byte(`{"backfill": {"nothing": true}}`)); err != nil || got.Failure == nil {
					t.Errorf("error %v, answer %s", err, got.Body())
				}
			},
			metrics: 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.due(t, sumetest.Plan{}, ids("job", 30)...)
			if test.prepare != nil {
				test.prepare(t, s)
			}
			b := s.limited(t, 5*time.Second, test.environ...)
			test.run(t, b)
			b.Stop()
			runs := strings.Count(b.Log(), `"message":"run"`)
			lines := b.metrics(t)
			if len(lines) != runs || runs == 0 {
				t.Errorf("%d lines of metrics, %d runs", len(lines), runs)
			}
			for _, line := range lines {
				if len(line) != test.metrics+2 { // beside the dimension and the description
					t.Errorf("%d metrics, want %d: %v", len(line)-2, test.metrics, line)
				}
			}
		})
	}
}

// metrics returns the lines of metrics in what a function put out.
func (b *sandbox) metrics(t *testing.T) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.Log()) {
		if !strings.Contains(line, `"_aws"`) {
			continue
		}
		var values map[string]any
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if values[telemetry.Dimension] != "poller" || !strings.Contains(line, `"Namespace":"`+telemetry.Namespace+`"`) {
			t.Errorf("line %s", line)
		}
		found = append(found, values)
	}
	return found
}
