package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sumepoller/internal/poller"
)

// Run is one run, as its metrics describe it.
type Run struct {
	Function string // the function's name
	Summary  poller.Summary
	Counted  bool // Summary.Backlog was read from the table at the end of the run
	At       time.Time
}

// Emit writes the metrics of a run as one line, in one call of w.Write.
func Emit(w io.Writer, r Run) error {
	line := map[string]any{Dimension: r.Function}
	var names []definition
	for _, m := range metrics {
		if !r.Counted && (m.fromTable || m.name == LatenessSeconds && len(r.Summary.Late) == 0) {
			continue
		}
		names = append(names, definition{Name: m.name, Unit: m.unit})
		line[m.name] = m.value(r.Summary)
	}
	line["_aws"] = metadata{Timestamp: r.At.UnixMilli(), CloudWatchMetrics: []directive{
		{Namespace: Namespace, Dimensions: [][]string{{Dimension}}, Metrics: names},
	}}
	encoded, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode the metrics: %w", err)
	}
	if _, err := w.Write(append(encoded, '\n')); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// The members of the embedded metric format.
type (
	metadata struct {
		Timestamp         int64 // milliseconds since the epoch
		CloudWatchMetrics []directive
	}
	directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []definition
	}
	definition struct {
		Name string
		Unit string
	}
)
