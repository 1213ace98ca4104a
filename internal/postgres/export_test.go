package postgres

import (
	"context"
	"net"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
)

// ConnectTo is Connect with one address for every name, and with fixed AWS
// credentials.
func ConnectTo(ctx context.Context, address string, cfg config.Database, logins Logins) (*pgxpool.Pool, error) {
	return connect(ctx, cfg, logins, outside{
		region:      "eu-central-1",
		credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "SECRETEXAMPLE", ""),
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
	})
}
