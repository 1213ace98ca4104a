package submit

import (
	"fmt"
	"strings"
)

// WriteError is a write that the database refuses and would refuse again, because
// of a constraint, a trigger, a policy, or a missing grant or column. A lost
// connection, a full disk or a timeout is not a WriteError.
type WriteError struct {
	JobID      string // bought and not recorded; empty if nothing was sent
	SQLState   string // empty: there was no error, but the row is not there or would never be read
	Table      string // this and the next three: as the server names them
	Column     string
	Constraint string
	Function   string // the innermost PL/pgSQL function, mostly a trigger's
	Message    string // of the server or a trigger; never logged, since it may quote the order
}

// Error returns what refused the write, on one line without URLs.
func (e *WriteError) Error() string {
	if message := oneLine(e.Message); message != "" {
		return e.what() + ": " + message
	}
	return e.what()
}

// Brief returns the job, what refused its row and the cure, without the
// server's message, for the log.
func (e *WriteError) Brief() string {
	brief := e.what() + "; " + e.Cure()
	if e.JobID != "" {
		brief = fmt.Sprintf("%s is bought and not recorded: %s", e.JobID, brief)
	}
	return brief
}

func (e *WriteError) what() string {
	if e.SQLState == "" {
		return "the row was inserted without an error but is not there, or is not pending"
	}
	parts := []string{"SQLSTATE " + e.SQLState}
	for _, part := range []struct{ kind, name string }{
		{"table", e.Table}, {"column", e.Column}, {"constraint", e.Constraint}, {"function", e.Function},
	} {
		if part.name != "" {
			parts = append(parts, part.kind+" "+oneLine(part.name))
		}
	}
	return strings.Join(parts, ", ")
}

// Cure returns what to change in the database.
func (e *WriteError) Cure() string {
	switch e.SQLState {
	case "":
		return "change the trigger on video_jobs that drops, moves, renames or changes inserted rows"
	case "23502":
		return fmt.Sprintf("give column %s a default, or drop its NOT NULL", oneLine(e.Column))
	case "22001":
		return "widen the column: ALTER TABLE video_jobs ALTER COLUMN job_id TYPE text"
	case "23503":
		return "drop the foreign key, or insert the row that it refers to in a BEFORE INSERT trigger"
	case "23505", "23P01":
		return "drop the constraint, or remove the row that it conflicts with"
	case "23514":
		return "change the CHECK so that it allows a pending row of (job_id, state, next_poll_at, created_at, idempotency_key)"
	case "42501":
		return "grant the submitter's role SELECT and INSERT on video_jobs and SELECT, INSERT and UPDATE on video_submissions; " +
			"with row-level security, create policies FOR SELECT and FOR INSERT that allow its rows"
	case "42703", "42P01":
		return "run the migration"
	}
	return "change what raises it so that a pending row of (job_id, state, next_poll_at, created_at, idempotency_key) can be inserted"
}
