package submit

import (
	"fmt"
	"strings"
)

// WriteError is a write of a purchase that the database refuses and would refuse
// again: a constraint, a trigger, a policy or a missing right or column. A lost
// connection, a full disk or a timeout is none.
type WriteError struct {
	JobID      string // bought and not recorded; empty where nothing was sent
	SQLState   string // empty: no error came, and yet the job's row is not there, or would never be read
	Table      string // this and the next three: as far as the server names them
	Column     string
	Constraint string
	Function   string // the innermost PL/pgSQL function, mostly a trigger's
	Message    string // the server's or the trigger's; may quote the order, so it is never logged
}

// Error returns what refused the write, in one line without URLs.
func (f *WriteError) Error() string {
	if message := cut(f.Message); message != "" {
		return f.what() + ": " + message
	}
	return f.what()
}

// Brief returns the job, what refused its row and the cure, without the
// server's message, for the log.
func (f *WriteError) Brief() string {
	text := f.what() + "; " + f.Cure()
	if f.JobID != "" {
		text = fmt.Sprintf("%s is bought and not recorded: %s", f.JobID, text)
	}
	return text
}

func (f *WriteError) what() string {
	if f.SQLState == "" {
		return "the row was inserted without an error and is not there, or not pending"
	}
	parts := []string{"SQLSTATE " + f.SQLState}
	for _, part := range []struct{ kind, name string }{
		{"table", f.Table}, {"column", f.Column}, {"constraint", f.Constraint}, {"function", f.Function},
	} {
		if part.name != "" {
			parts = append(parts, part.kind+" "+cut(part.name))
		}
	}
	return strings.Join(parts, ", ")
}

// Cure returns what to change in the database.
func (f *WriteError) Cure() string {
	switch f.SQLState {
	case "":
		return "change the trigger on video_jobs that drops, moves, renames or changes inserted rows"
	case "23502":
		return fmt.Sprintf("give column %s a default, or drop its NOT NULL", cut(f.Column))
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
