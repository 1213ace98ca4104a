package secrets

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// Login is a database's secret in the form of RDS. Host, Port and Name are zero if
// the secret does not have them: the one that RDS manages holds only Username and
// Password.
type Login struct {
	Username string
	Password string // for no log and no error
	Host     string
	Port     int
	Name     string // of the database
}

// String returns the login without its password.
func (l Login) String() string { return l.Username + "@" + l.Host + "/" + l.Name }

// Login returns the login in the secret with this id or ARN, from the cache if it
// is fresh. An error is an *Error.
func (c *Cache) Login(ctx context.Context, id string) (Login, error) {
	raw, err := c.Get(ctx, id)
	if err != nil {
		return Login{}, err
	}
	return loginOf(id, raw)
}

// RenewLogin returns the login after the password of rejected was refused: the
// cached one if it differs, otherwise the one that a fetch brings, which can be the
// rejected one again.
func (c *Cache) RenewLogin(ctx context.Context, id string, rejected Login) (Login, error) {
	raw, err := c.renew(ctx, id, func(raw string) bool {
		login, problem := ParseLogin(raw)
		return problem != "" || login == rejected
	})
	if err != nil {
		return Login{}, err
	}
	return loginOf(id, raw)
}

func loginOf(id, raw string) (Login, error) {
	login, problem := ParseLogin(raw)
	if problem != "" {
		return Login{}, &Error{ID: id, Reason: problem}
	}
	return login, nil
}

// ParseLogin reads a secret's value. problem says in one line, without any value,
// why it is no login.
func ParseLogin(raw string) (login Login, problem string) {
	const form = "want JSON with username and password as RDS keeps it"
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &object) != nil || object == nil {
		return Login{}, "is no JSON object; " + form
	}
	port := ""
	for _, field := range []struct {
		name string
		to   *string
	}{{"username", &login.Username}, {"password", &login.Password}, {"host", &login.Host}, {"dbname", &login.Name}, {"port", &port}} {
		value, ok := object[field.name]
		if !ok || json.Unmarshal(value, field.to) == nil { // null leaves it empty
			continue
		}
		var number json.Number
		if field.name != "port" || json.Unmarshal(value, &number) != nil {
			return Login{}, "its " + field.name + " is not a string; " + form
		}
		port = number.String()
	}
	if login.Username == "" || login.Password == "" {
		return Login{}, "has no username or no password; " + form
	}
	if port = strings.TrimSpace(port); port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65_535 {
			return Login{}, "its port is no number from 1 to 65535; " + form
		}
		login.Port = n
	}
	return login, ""
}
