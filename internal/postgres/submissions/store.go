package submissions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/postgres"
	"sumepoller/internal/submit"
)

// Submissions implements submit.Store. It may be used by several goroutines at
// once, and through a transaction pooler.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of submissions over pool, which stays the
// caller's.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// findSQL reads one submission with the state of its job's row, and whether the
// job $2 has a row. The age is the database's, in microseconds, never negative
// where its clock was set back.
const findSQL = `
SELECT s.request::text, s.state, coalesce(s.job_id, ''),
       CASE WHEN j.job_id IS NULL THEN '' ELSE coalesce(j.state, 'unknown') END,
       coalesce(s.http_status, 0), s.unanswered, coalesce(s.last_error, ''),
       (extract(epoch FROM now() - least(greatest(s.created_at, now() - interval '100 years'), now())) * 1000000)::bigint,
       EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = $2::text)
FROM video_submissions AS s
LEFT JOIN video_jobs AS j ON j.job_id = s.job_id
WHERE s.idempotency_key = $1::text`

func (s *Store) find(ctx context.Context, key, jobID string) (sub submit.Submission, there bool, err error) {
	var age int64
	err = s.pool.QueryRow(ctx, findSQL, key, jobID).
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

// openSQL writes the intent of a new key. The request is a json column, which
// keeps the text verbatim; what comes back is what it holds.
const openSQL = `
INSERT INTO video_submissions (idempotency_key, request, state)
VALUES ($1::text, $2::text::json, 'sending')
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING request::text`

// Open implements submit.Store.
func (s *Store) Open(ctx context.Context, key string, request []byte) (submit.Submission, error) {
	sub := submit.Submission{New: true, State: submit.Sending}
	err := s.pool.QueryRow(ctx, openSQL, key, string(request)).Scan(&sub.Request)
	if errors.Is(err, pgx.ErrNoRows) {
		sub, _, err = s.find(ctx, key, "")
		return sub, err
	}
	if err != nil {
		return submit.Submission{}, fmt.Errorf("write submission: %w", err)
	}
	return sub, nil
}

// markSQL writes how a submission stands. A known job is final.
const markSQL = `
UPDATE video_submissions
SET state = $2::text, http_status = nullif($3::integer, 0), unanswered = $4::boolean, last_error = nullif($5::text, ''), updated_at = now()
WHERE idempotency_key = $1::text AND state IN ('sending', 'rejected') AND job_id IS NULL`

// Mark implements submit.Store.
func (s *Store) Mark(ctx context.Context, key string, o submit.Outcome) (submit.Submission, error) {
	if _, err := s.pool.Exec(ctx, markSQL, key, o.State, o.HTTPStatus, o.Unanswered, o.LastError); err != nil {
		return submit.Submission{}, fmt.Errorf("mark submission %s: %w", o.State, err)
	}
	sub, _, err := s.find(ctx, key, "")
	return sub, err
}

// keepSQL writes the id of the bought job before its row is tried: whatever
// video_jobs does then, the id is known.
const keepSQL = `
UPDATE video_submissions
SET state = 'sending', job_id = $2::text, updated_at = now()
WHERE idempotency_key = $1::text AND job_id IS NULL`

// Keep implements submit.Store.
func (s *Store) Keep(ctx context.Context, key, jobID string) error {
	if _, err := s.pool.Exec(ctx, keepSQL, key, jobID); err != nil {
		return fmt.Errorf("keep the id %q: %w", jobID, refusal(err))
	}
	return nil
}

// acceptSQL gives a job a row and, where the row is there, accepts its
// submission, in one statement and so in one transaction. A job that is in the
// table, from a backfill or a concurrent request, is left as it is and not waited
// for, whoever holds its row: nothing is inserted that the table could refuse. A
// paid job gets its row whatever the submissions hold.
const acceptSQL = `
WITH inserted AS (
    INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key)
    SELECT $2::text, 'pending', now() + interval '15 seconds', now(), $1::text
    WHERE NOT EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = $2::text)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id
)
UPDATE video_submissions
SET state = 'accepted', job_id = $2::text, http_status = NULL, unanswered = false, last_error = NULL, updated_at = now()
WHERE idempotency_key = $1::text
  AND state <> 'accepted'
  AND coalesce(job_id, $2::text) = $2::text
  AND (EXISTS (SELECT FROM inserted AS i WHERE i.job_id = $2::text)
       OR EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = $2::text))`

// Accept implements submit.Store.
func (s *Store) Accept(ctx context.Context, key, jobID string) (submit.Submission, error) {
	var sub submit.Submission
	// The row that a concurrent transaction inserted is not in the first
	// statement's snapshot, so that it takes a second one to accept the submission.
	for range 2 {
		if _, err := s.pool.Exec(ctx, acceptSQL, key, jobID); err != nil {
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

// unrecordSQL writes that a bought job has no row. The id is NULL where the table
// cannot hold it.
const unrecordSQL = `
UPDATE video_submissions
SET state = 'unrecorded', job_id = $2::text, http_status = NULL, unanswered = false, last_error = $3::text, updated_at = now()
WHERE idempotency_key = $1::text
  AND coalesce(job_id, $2::text, '') = coalesce($2::text, '')
  AND NOT EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = $2::text)`

// Unrecord implements submit.Store.
func (s *Store) Unrecord(ctx context.Context, key, jobID, reason string) (submit.Submission, error) {
	_, err := s.pool.Exec(ctx, unrecordSQL, key, jobID, reason)
	if errors.As(refusal(err), new(*submit.WriteError)) {
		// An id with characters that the database's encoding lacks.
		_, err = s.pool.Exec(ctx, unrecordSQL, key, nil, "job "+strconv.QuoteToASCII(jobID)+": "+strconv.QuoteToASCII(reason))
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

// tryReadSQL reports whether the trial's row will be read: a trigger can keep the
// row out of pending, or out of time.
const tryReadSQL = `
SELECT EXISTS (SELECT FROM video_jobs AS v
               WHERE v.job_id = $1::text AND v.state = 'pending' AND isfinite(v.next_poll_at))`

// Try implements submit.Store.
func (s *Store) Try(ctx context.Context, key string) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // where that fails, the connection is closed
	// As long as a short real id: an id that does not fit costs nobody's money,
	// since it is kept, but a column that would do must not be refused.
	probe := "job_" + strings.ToLower(rand.Text()[:12])
	if _, err := tx.Exec(ctx, acceptSQL, key, probe); err != nil {
		return refusal(err)
	}
	if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return refusal(err)
	}
	var there bool
	if err := tx.QueryRow(ctx, tryReadSQL, probe).Scan(&there); err != nil {
		return refusal(err)
	}
	if !there {
		return &submit.WriteError{}
	}
	return nil
}

// refusal turns a server's error that would come again into a submit.WriteError.
// The infrastructure's errors come back as they are.
func refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !postgres.Refused(err) {
		return err
	}
	r := &submit.WriteError{SQLState: pg.Code, Table: pg.TableName, Column: pg.ColumnName, Constraint: pg.ConstraintName, Message: pg.Message, Function: postgres.TriggerFunction(pg)}
	return r
}
