package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/submit"
)

// Submissions implements submit.Store. It may be used by several goroutines at
// once, and through a transaction pooler.
type Submissions struct {
	pool *pgxpool.Pool
}

// NewSubmissions returns the store of submissions over pool, which stays the
// caller's.
func NewSubmissions(pool *pgxpool.Pool) *Submissions { return &Submissions{pool: pool} }

// openSQL writes the intent of a new key. The request is a json column, which
// keeps the text to the letter; what comes back is what it holds.
const openSQL = `
INSERT INTO video_submissions (idempotency_key, request, state)
VALUES ($1::text, $2::text::json, 'sending')
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING request::text`

// Open implements submit.Store.
func (s *Submissions) Open(ctx context.Context, key string, request []byte) (submit.Submission, error) {
	sub := submit.Submission{New: true, State: submit.Sending}
	err := s.pool.QueryRow(ctx, openSQL, key, string(request)).Scan(&sub.Request)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.find(ctx, key)
	}
	if err != nil {
		return submit.Submission{}, fmt.Errorf("write submission: %w", err)
	}
	return sub, nil
}

// findSQL reads one submission with the state of its job's row. The age is the
// database's, never negative where its clock was set back.
const findSQL = `
SELECT s.request::text, s.state,
       coalesce(s.job_id, ''), coalesce(j.state, ''), coalesce(s.last_error, ''),
       (extract(epoch FROM greatest(now() - s.created_at, interval '0')) * 1000000)::bigint
FROM video_submissions s
LEFT JOIN video_jobs j ON j.job_id = s.job_id
WHERE s.idempotency_key = $1::text`

func (s *Submissions) find(ctx context.Context, key string) (submit.Submission, error) {
	var sub submit.Submission
	var age int64
	err := s.pool.QueryRow(ctx, findSQL, key).
		Scan(&sub.Request, &sub.State, &sub.JobID, &sub.JobState, &sub.LastError, &age)
	sub.Age = duration(age)
	if err != nil {
		return submit.Submission{}, fmt.Errorf("read submission: %w", err)
	}
	return sub, nil
}

// markSQL writes how a submission stands. An acceptance is final.
const markSQL = `
UPDATE video_submissions
SET state = $2::text, last_error = nullif($3::text, ''), updated_at = now()
WHERE idempotency_key = $1::text AND state <> 'accepted'`

// Mark implements submit.Store.
func (s *Submissions) Mark(ctx context.Context, key, state, lastError string) (submit.Submission, error) {
	if _, err := s.pool.Exec(ctx, markSQL, key, state, lastError); err != nil {
		return submit.Submission{}, fmt.Errorf("mark submission %s: %w", state, err)
	}
	return s.find(ctx, key)
}

// acceptSQL accepts a submission and gives its job a row, in one statement and
// so in one transaction. The first job accepted for a key stays. A job that is
// in the table, from a backfill or a twin, is left as it is and not waited for,
// whoever holds its row. A paid job gets its row whatever the submissions hold.
const acceptSQL = `
WITH accepted AS (
    UPDATE video_submissions
    SET state      = 'accepted',
        job_id     = CASE WHEN state = 'accepted' THEN job_id ELSE $2::text END,
        last_error = NULL,
        updated_at = CASE WHEN state = 'accepted' THEN updated_at ELSE now() END
    WHERE idempotency_key = $1::text
)
INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key)
VALUES ($2::text, 'pending', now() + interval '15 seconds', now(), $1::text)
ON CONFLICT (job_id) DO NOTHING`

// Accept implements submit.Store.
func (s *Submissions) Accept(ctx context.Context, key, jobID string) (submit.Submission, error) {
	if _, err := s.pool.Exec(ctx, acceptSQL, key, jobID); err != nil {
		return submit.Submission{}, fmt.Errorf("accept submission for %s: %w", jobID, err)
	}
	return s.find(ctx, key)
}
