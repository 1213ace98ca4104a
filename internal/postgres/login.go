package postgres

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/rds/auth"
	"github.com/aws/smithy-go/logging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
)

// Logins returns the database's logins. *secrets.Cache implements it.
type Logins interface {
	// Login returns the login kept in the secret.
	Login(ctx context.Context, id string) (secrets.Login, error)
	// RenewLogin fetches the login again, after rejected was refused.
	RenewLogin(ctx context.Context, id string, rejected secrets.Login) (secrets.Login, error)
}

// secretConfig takes the login from a secret, and from cfg what the secret does not
// hold. Every connection asks for the login again: after a rotation the next
// connection uses the new password, and a refused one is fetched again.
func secretConfig(ctx context.Context, cfg config.Database, logins Logins) (*pgxpool.Config, error) {
	if logins == nil {
		return nil, fmt.Errorf("%s is set, and nothing reads secrets", config.DatabaseSecretID)
	}
	login, err := logins.Login(ctx, cfg.SecretID)
	if err != nil {
		return nil, err
	}
	host, port, name := login.Host, login.Port, login.Name
	if host == "" {
		host = cfg.Host
	}
	if port == 0 {
		port = cfg.Port
	}
	if name == "" {
		name = cfg.Name
	}
	if host == "" || name == "" {
		return nil, fmt.Errorf("secret %s holds no host or no dbname: set %s and %s", cfg.SecretID, config.DatabaseHost, config.DatabaseName)
	}
	pc, err := parseFields(host, port, name, login.Username)
	if err != nil {
		return nil, fmt.Errorf("the login in secret %s is not a valid connection", cfg.SecretID)
	}
	var refused atomic.Pointer[secrets.Login]
	pc.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		login, err := logins.Login(ctx, cfg.SecretID)
		if rejected := refused.Swap(nil); rejected != nil && err == nil {
			login, err = logins.RenewLogin(ctx, cfg.SecretID, *rejected)
		}
		if err != nil {
			return err
		}
		cc.User, cc.Password = login.Username, login.Password
		watchLogin(cc, func() { refused.Store(&login) })
		return nil
	}
	return pc, nil
}

// rdsHost is an endpoint of RDS, Aurora or RDS Proxy, with its region.
var rdsHost = regexp.MustCompile(`^[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.([a-z0-9-]+)\.rds\.amazonaws\.com(?:\.cn)?$`)

// iamConfig logs in with a token as the password. Each connection gets a new token,
// since it is valid for fifteen minutes.
func iamConfig(ctx context.Context, cfg config.Database, out outside) (*pgxpool.Config, error) {
	endpoint := rdsHost.FindStringSubmatch(cfg.Host)
	if endpoint == nil && !config.LocalHost(cfg.Host) {
		return nil, fmt.Errorf("%s: %q is no endpoint of RDS; an IAM login needs the endpoint that RDS shows, such as db.abc.eu-central-1.rds.amazonaws.com, "+
			"no alias and no port", config.DatabaseHost, cfg.Host)
	}
	if out.credentials == nil {
		loaded, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
		if err != nil {
			return nil, fmt.Errorf("load the AWS configuration: %w", err)
		}
		out.region, out.credentials = loaded.Region, loaded.Credentials
	}
	if endpoint != nil {
		out.region = endpoint[1]
	}
	if out.region == "" {
		return nil, fmt.Errorf("IAM login: no AWS region is set")
	}
	pc, err := parseFields(cfg.Host, cfg.Port, cfg.Name, cfg.User)
	if err != nil {
		return nil, fmt.Errorf("%s, %s and %s are not a valid connection", config.DatabaseHost, config.DatabaseName, config.DatabaseUser)
	}
	address := net.JoinHostPort(strings.TrimSuffix(cfg.Host, "."), strconv.Itoa(cfg.Port))
	pc.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		token, err := auth.BuildAuthToken(ctx, address, out.region, cfg.User, out.credentials)
		if err != nil {
			return fmt.Errorf("sign the IAM login: %w", err)
		}
		cc.Password = token
		return nil
	}
	return pc, nil
}
