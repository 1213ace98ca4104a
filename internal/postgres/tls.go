package postgres

import (
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/config"
)

// rdsRoots are the authorities that sign the certificates of Amazon RDS. Systems do
// not trust them by default. The file names its source and date.
//
//go:embed roots/rds.pem
var rdsRoots []byte

// isURL distinguishes the two forms of a connection string, as the driver does.
func isURL(raw string) bool {
	return strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
}

// withFullVerification sets sslmode=verify-full in a valid connection string, also
// where it says verify-ca.
func withFullVerification(raw string) string {
	if !isURL(raw) {
		return raw + " sslmode=verify-full" // the last one counts
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	query := u.Query()
	query.Set("sslmode", "verify-full")
	u.RawQuery = query.Encode()
	return u.String()
}

// trustRDS trusts Amazon's authorities beside the system's, unless sslrootcert names
// others. It fails if a server would not be verified.
func trustRDS(cc *pgx.ConnConfig) error {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(rdsRoots)
	verify := func(c *tls.Config, host string) error {
		switch {
		case config.LocalHost(host):
			return nil
		case c == nil || c.InsecureSkipVerify || c.ServerName == "":
			return errors.New("a server that is not on loopback would not be verified")
		}
		if c.RootCAs == nil {
			c.RootCAs = roots
		}
		c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
		return nil
	}
	err = verify(cc.TLSConfig, cc.Host)
	for _, f := range cc.Fallbacks {
		err = errors.Join(err, verify(f.TLSConfig, f.Host))
	}
	return err
}
