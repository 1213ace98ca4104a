// Package submissions keeps the submit function's intents and their jobs in
// PostgreSQL. The statements are in the .sql files of this directory.
package submissions

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
	"sumepoller/internal/submit"
)

//go:embed *.sql
var files embed.FS

var (
	findSQL       = statement.Read(files, "find")
	openSQL       = statement.Read(files, "open")
	markSQL       = statement.Read(files, "mark")
	keepSQL       = statement.Read(files, "keep")
	acceptSQL     = statement.Read(files, "accept")
	unrecordSQL   = statement.Read(files, "unrecord")
	willBeReadSQL = statement.Read(files, "will_be_read")
)

// Store implements submit.Store. It may be used concurrently, and through a
// transaction pooler.
type Store struct {
	pool *pgxpool.Pool
}

// New returns a store on pool. The caller closes the pool.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

func (s *Store) find(ctx context.Context, key, jobID string) (sub submit.Submission, there bool, err error) {
	var age int64
	err = s.pool.QueryRow(ctx, findSQL, statement.Args{"key": key, "job_id": jobID}).
		Scan(&sub.Request, &sub.State, &sub.JobID, &sub.JobState, &sub.HTTPStatus, &sub.Unanswered, &sub.LastError, &age, &there)
	if err != nil {
		return submit.Submission{}, false, fmt.Errorf("read submission: %w", err)
	}
	sub.Age = time.Duration(age) * time.Microsecond
	return sub, there, nil
}

// Find implements submit.Store.
func (s *Store) Find(ctx context.Context, key string) (submit.Submission, error) {
	sub, _, err := s.find(ctx, key, "")
	if errors.Is(err, pgx.ErrNoRows) {
		return submit.Submission{}, nil
	}
	return sub, err
}

// Open implements submit.Store.
func (s *Store) Open(ctx context.Context, key string, request []byte) (submit.Submission, error) {
	sub := submit.Submission{New: true, State: submit.Sending}
	err := s.pool.QueryRow(ctx, openSQL, statement.Args{"key": key, "request": string(request)}).Scan(&sub.Request)
	if errors.Is(err, pgx.ErrNoRows) {
		sub, _, err = s.find(ctx, key, "")
		return sub, err
	}
	if err != nil {
		return submit.Submission{}, fmt.Errorf("write submission: %w", err)
	}
	return sub, nil
}

// Mark implements submit.Store.
func (s *Store) Mark(ctx context.Context, key string, o submit.Outcome) (submit.Submission, error) {
	args := statement.Args{
		"key": key, "state": o.State, "http_status": o.HTTPStatus, "unanswered": o.Unanswered, "last_error": o.LastError,
	}
	if _, err := s.pool.Exec(ctx, markSQL, args); err != nil {
		return submit.Submission{}, fmt.Errorf("mark submission %s: %w", o.State, err)
	}
	sub, _, err := s.find(ctx, key, "")
	return sub, err
}

// Keep implements submit.Store.
func (s *Store) Keep(ctx context.Context, key, jobID string) error {
	if _, err := s.pool.Exec(ctx, keepSQL, statement.Args{"key": key, "job_id": jobID}); err != nil {
		return fmt.Errorf("keep the id %q: %w", jobID, refusal(err))
	}
	return nil
}

// Accept implements submit.Store.
func (s *Store) Accept(ctx context.Context, key, jobID string) (submit.Submission, error) {
	var sub submit.Submission
	// A row that a concurrent transaction inserted is not in the first statement's
	// snapshot: only a second statement accepts the submission.
	for range 2 {
		if _, err := s.pool.Exec(ctx, acceptSQL, statement.Args{"key": key, "job_id": jobID}); err != nil {
			return submit.Submission{}, fmt.Errorf("accept submission for %s: %w", jobID, refusal(err))
		}
		found, there, err := s.find(ctx, key, jobID)
		switch {
		case err != nil:
			return submit.Submission{}, err
		case !there:
			return submit.Submission{}, fmt.Errorf("accept submission for %s: %w", jobID, &submit.WriteError{})
		case found.State == submit.Accepted || found.JobID != jobID:
			return found, nil
		}
		sub = found
	}
	return sub, fmt.Errorf("accept submission for %s: another transaction changed it", jobID)
}

// Unrecord implements submit.Store.
func (s *Store) Unrecord(ctx context.Context, key, jobID, reason string) (submit.Submission, error) {
	args := statement.Args{"key": key, "job_id": jobID, "reason": reason}
	_, err := s.pool.Exec(ctx, unrecordSQL, args)
	if errors.As(refusal(err), new(*submit.WriteError)) {
		// The id has characters that the database's encoding does not have.
		args["job_id"], args["reason"] = nil, "job "+strconv.QuoteToASCII(jobID)+": "+strconv.QuoteToASCII(reason)
		_, err = s.pool.Exec(ctx, unrecordSQL, args)
		jobID = ""
	}
	if err != nil {
		return submit.Submission{}, fmt.Errorf("mark submission unrecorded: %w", err)
	}
	sub, there, err := s.find(ctx, key, jobID)
	if there && sub.State != submit.Accepted {
		return s.Accept(ctx, key, jobID)
	}
	return sub, err
}

// Try implements submit.Store.
func (s *Store) Try(ctx context.Context, key string) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // if that fails, the connection is closed
	// No longer than a real id: a column that is wide enough must not be refused. If
	// a real id does not fit, it is kept with the submission.
	probe := "job_" + strings.ToLower(rand.Text()[:12])
	if _, err := tx.Exec(ctx, acceptSQL, statement.Args{"key": key, "job_id": probe}); err != nil {
		return refusal(err)
	}
	if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return refusal(err)
	}
	var read bool
	if err := tx.QueryRow(ctx, willBeReadSQL, statement.Args{"job_id": probe}).Scan(&read); err != nil {
		return refusal(err)
	}
	if !read {
		return &submit.WriteError{}
	}
	return nil
}

// refusal turns an error of the server that would be the same next time into a
// *submit.WriteError. It returns errors of the infrastructure as they are.
func refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !postgres.Refused(err) {
		return err
	}
	r := &submit.WriteError{SQLState: pg.Code, Table: pg.TableName, Column: pg.ColumnName, Constraint: pg.ConstraintName, Message: pg.Message, Function: postgres.TriggerFunction(pg)}
	return r
}
