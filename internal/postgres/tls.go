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

// rdsRoots are the authorities that sign the certificates of Amazon RDS. The
// system does not trust them. The file names its source and date.
//
//go:embed roots/rds.pem
var rdsRoots []byte

// isURL tells the two forms of a connection string apart, as the driver does.
func isURL(raw string) bool {
	return strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
}

// withFullVerification puts sslmode=verify-full into a connection string that
// parses, also in place of verify-ca.
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

// trustRDS adds Amazon's authorities to the system's, where no sslrootcert names
// others, and makes sure that nothing is left unverified.
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
			return errors.New("a server beyond loopback would not be verified")
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
