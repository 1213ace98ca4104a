package config

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func (e *Errors) database(d Database) {
	e.between(DatabaseMaxConns, d.MaxConns, maxConns)
	e.between(DatabasePort, d.Port, 65_535)
	if d.Auth != "" && d.Auth != DatabaseAuthIAM {
		e.add(DatabaseAuth, shown(d.Auth)+" is unknown", "iam, or nothing")
	}
	if d.URL != "" {
		var invalid ValueError
		if _, _, err := ParseURL(d.URL); errors.As(err, &invalid) {
			e.add(invalid.Name, invalid.Problem, invalid.Want)
		}
		return
	}
	if e.has(DatabaseAuth) {
		return
	}
	switch {
	case d.SecretID != "" && d.Auth != "":
		e.add(DatabaseAuth, "is set beside "+DatabaseSecretID, "one of the two")
	case d.SecretID != "":
	case d.Auth == DatabaseAuthIAM:
		e.needed(DatabaseHost, d.Host, "the server's host name")
		e.needed(DatabaseName, d.Name, "the database's name")
		e.needed(DatabaseUser, d.User, "the role that logs in")
	default:
		e.add(DatabaseURL, "not set", "a connection string; or set "+DatabaseSecretID+"; or set "+DatabaseAuth+"=iam, "+
			DatabaseHost+", "+DatabaseName+" and "+DatabaseUser)
	}
}

// ParseURL parses a connection string and uses no network. It reports whether
// every server in it is on this machine. Otherwise it refuses each sslmode that
// does not verify the server. The error is a ValueError. It holds no part of
// the string, since each part of a string that does not parse can be a part of
// the password.
func ParseURL(raw string) (pc *pgxpool.Config, local bool, err error) {
	pc, err = pgxpool.ParseConfig(raw)
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return nil, false, ValueError{DatabaseURL, "a file that it names cannot be read: " + file.Error(), "the path of a file that the function has"}
	case err != nil:
		return nil, false, ValueError{DatabaseURL, "does not parse", "postgres://USER:PASSWORD@HOST:PORT/NAME, " +
			"each part percent-encoded where it holds whitespace or any of # % ? / : @ [; or host=… dbname=…"}
	case isLocal(pc.ConnConfig):
		return pc, true, nil
	}
	switch mode := sslMode(raw); mode {
	case "disable", "allow", "prefer", "require":
		return nil, false, ValueError{DatabaseURL, "sslmode=" + mode + " does not verify the server", "sslmode=verify-full, or no sslmode"}
	}
	return pc, false, nil
}

// isLocal reports whether every server of the configuration is on this machine.
func isLocal(cc *pgx.ConnConfig) bool {
	for _, fallback := range cc.Fallbacks {
		if !LocalHost(fallback.Host) {
			return false
		}
	}
	return LocalHost(cc.Host)
}

// LocalHost reports whether a host is a loopback address or the directory of a
// Unix socket.
func LocalHost(host string) bool {
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || loopback(host)
}

// loopback reports whether a host is a name or address of this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

var modeSetting = regexp.MustCompile(`(?:^|\s)sslmode\s*=\s*'?([^\s']*)`)

// sslMode returns the mode that a valid connection string asks for. The driver
// does not keep it.
func sslMode(raw string) string {
	if strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://") {
		u, err := url.Parse(raw)
		if err != nil {
			return ""
		}
		return u.Query().Get("sslmode")
	}
	if all := modeSetting.FindAllStringSubmatch(raw, -1); all != nil {
		return all[len(all)-1][1] // the last one counts
	}
	return ""
}
