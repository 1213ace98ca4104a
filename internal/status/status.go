// Package status prints a function's answer for a person: an inspect as
// tables, any other answer as indented JSON, a failed invocation as an error.
//
// It reads the answer as any other program would and shares no type with the
// function that gave it, so that an older checkout can read a newer function.
package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// view is what is shown of an inspect's answer.
type view struct {
	At               time.Time      `json:"at"`
	States           map[string]int `json:"states"`
	StatesExact      bool           `json:"states_exact"`
	Due              int            `json:"due"`
	OldestDueSeconds float64        `json:"oldest_due_seconds"`
	OldestDue        []row          `json:"oldest_due"`
	Leased           int            `json:"leased"`
	LongRunningTotal int            `json:"long_running_total"`
	LongRunning      []row          `json:"long_running"`
	FailingTotal     int            `json:"failing_total"`
	Failing          []row          `json:"failing"`
	ReadsToday       int            `json:"reads_today"`
	ReadsLeft        *int           `json:"reads_left"`
	Submissions      []submission   `json:"submissions"`
	SubmissionsTotal int            `json:"submissions_total"`
	SubmissionsStuck int            `json:"submissions_stuck"`
	Jobs             []row          `json:"jobs"`
	Unknown          []string       `json:"unknown"`
}

// row is one job.
type row struct {
	JobID             string     `json:"job_id"`
	State             string     `json:"state"`
	SumeStatus        *string    `json:"sume_status"`
	CreatedAt         *time.Time `json:"created_at"`
	NextPollAt        *time.Time `json:"next_poll_at"`
	LeasedUntil       *time.Time `json:"leased_until"`
	LastPolledAt      *time.Time `json:"last_polled_at"`
	FinishedAt        *time.Time `json:"finished_at"`
	FailingSince      *time.Time `json:"failing_since"`
	Polls             int        `json:"polls"`
	LostLeases        int        `json:"lost_leases"`
	DueSeconds        float64    `json:"due_seconds"`
	AgeSeconds        float64    `json:"age_seconds"`
	ConsecutiveErrors int        `json:"consecutive_errors"`
	LastError         *string    `json:"last_error"`
}

// submission is a paid post without a recorded job.
type submission struct {
	IdempotencyKey string  `json:"idempotency_key"`
	State          string  `json:"state"`
	JobID          *string `json:"job_id"`
	AgeSeconds     int64   `json:"age_seconds"`
	LastError      *string `json:"last_error"`
}

// Print writes an answer to w. The error of an invocation that failed is
// returned and nothing written: Lambda's command line and its emulator report
// success for those too, and only the answer tells.
func Print(w io.Writer, answer []byte) error {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return errors.New("the function gave no answer")
	}
	var head struct {
		Mode         string  `json:"mode"`
		ErrorMessage *string `json:"errorMessage"`
	}
	if err := json.Unmarshal(answer, &head); err != nil || answer[0] != '{' {
		const longest = 300
		return fmt.Errorf("the function gave no JSON object: %s", strings.ToValidUTF8(string(answer[:min(len(answer), longest)]), "?"))
	}
	if head.ErrorMessage != nil {
		return fmt.Errorf("the function failed: %s", *head.ErrorMessage)
	}
	if head.Mode != "inspect" {
		return printJSON(w, answer)
	}
	var v view
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("read the inspect's answer: %w", err)
	}
	_, err := io.WriteString(w, v.table())
	return err
}

func printJSON(w io.Writer, answer []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, answer, "", "  "); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}
