package postgres

import (
	"context"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
)

// ConnectTo is Connect where every name leads to one address, and IAM has
// credentials of its own.
func ConnectTo(ctx context.Context, address string, cfg config.Database, logins Logins) (*pgxpool.Pool, error) {
	return connect(ctx, cfg, logins, outside{
		region:      "eu-central-1",
		credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "SECRETEXAMPLE", ""),
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
	})
}

// ClaimSQL is the claim's statement, to be explained.
const ClaimSQL = claimSQL

// SweepIn makes the store's claims sweep once d is over, and not before where
// they do not come up short.
func (s *Store) SweepIn(d time.Duration) {
	s.claim.mu.Lock()
	defer s.claim.mu.Unlock()
	s.claim.sweepAt = time.Now().Add(d)
}

// SettleSQL is the settle's statement in the form that waits, to be explained.
const SettleSQL = settleSQL

// LeaseText writes a lease as the statements take it.
var LeaseText = uuid

// Statements to be explained.
const (
	ReleaseSQL = releaseSQL
	OutcomeSQL = outcomeSQL
	NextDueSQL = nextDueSQL
	BacklogSQL = backlogSQL
)
