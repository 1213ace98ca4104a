package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sumepoller/internal/operator"
)

// Print writes the answer to an inspect as tables and any other answer as
// indented JSON.
func Print(w io.Writer, answer []byte) error { return request{}.print(w, answer) }

func (r request) print(w io.Writer, answer []byte) error {
	var inspection operator.Inspection
	// Another answer's fields may have other types; only its mode counts.
	if err := json.Unmarshal(answer, &inspection); inspection.Mode != operator.ModeInspect {
		return printJSON(w, answer)
	} else if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if r.state != "" {
		inspection.Jobs = slices.DeleteFunc(inspection.Jobs, func(j operator.JobRow) bool { return j.State != r.state })
		filtered, err := json.Marshal(inspection)
		if err != nil {
			return err
		}
		answer = filtered
	}
	if r.json {
		return printJSON(w, answer)
	}
	_, err := io.WriteString(w, table{inspection}.String())
	return err
}

func printJSON(w io.Writer, answer []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(answer), "", "  "); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}
