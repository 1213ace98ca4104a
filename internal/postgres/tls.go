package postgres

import (
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rdsRoots are the authorities that sign the certificates of Amazon RDS. The
// system does not trust them. The file names its source and date.
//
//go:embed roots/rds.pem
var rdsRoots []byte

// unverified are the modes that do not verify the server, or only if it likes.
// verify-ca is raised to verify-full.
var unverified = map[string]bool{"disable": true, "allow": true, "prefer": true, "require": true}

// local tells that every server of the configuration is on this machine.
func local(cc *pgx.ConnConfig) bool {
	if !localHost(cc.Host) {
		return false
	}
	for _, f := range cc.Fallbacks {
		if !localHost(f.Host) {
			return false
		}
	}
	return true
}

// localHost tells a loopback address or the folder of a Unix socket.
func localHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") ||
		strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// isURL tells the two forms of a connection string apart, as the driver does.
func isURL(raw string) bool {
	return strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
}

var modeSetting = regexp.MustCompile(`(?:^|\s)sslmode\s*=\s*'?([^\s']*)`)

// sslMode returns the mode that a connection string asks for, or nothing.
func sslMode(raw string) string {
	if isURL(raw) {
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		return u.Query().Get("sslmode")
	}
	if found := modeSetting.FindAllStringSubmatch(raw, -1); found != nil {
		return found[len(found)-1][1]
	}
	return ""
}

// withFullVerification puts sslmode=verify-full into a connection string that
// parses.
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
		case localHost(host):
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
