package secrets_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/secrets"
)

// fixed is a secret that is read at once; each fetch takes the next value, the
// last one stays.
type fixed struct{ values []string }

func (f *fixed) Fetch(context.Context, string) (string, error) {
	value := f.values[0]
	if len(f.values) > 1 {
		f.values = f.values[1:]
	}
	return value, nil
}

func apiKey(values ...string) *secrets.APIKey {
	return secrets.NewAPIKey(secrets.NewCache(&fixed{values}), "sume/key")
}

func TestKey(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"plain":            "sk_1",
		"trailing newline": "sk_1\r\n",
		"JSON":             `{"api_key": "sk_1"}`,
		"JSON with more":   " {\"other\": 1, \"API_KEY\": \"no\", \"api_key\": \"sk_1\\n\"}\n",
	} {
		if got, err := apiKey(raw).Key(t.Context()); got != "sk_1" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKey_Invalid(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                             "sume/key: is empty",
		" \n":                          "sume/key: is empty",
		`{"api_key": ""}`:              "sume/key: is empty",
		"REPLACE_ME":                   "sume/key: still holds the placeholder REPLACE_ME",
		`{"api_key": "REPLACE_ME\n"}`:  "sume/key: still holds the placeholder REPLACE_ME",
		"hunter2\nhunter2":             "sume/key: holds whitespace, control",
		"hunter2 hunter2":              "sume/key: holds whitespace, control",
		"hunter2\x00":                  "sume/key: holds whitespace, control",
		"hunter2ü":                     "sume/key: holds whitespace, control",
		"\xef\xbb\xbfhunter2":          "sume/key: holds whitespace, control",
		`{"API_KEY": "hunter2"}`:       "sume/key: is JSON without api_key",
		`{"api_key": {"v":"hunter2"}}`: "sume/key: is JSON whose api_key is not a string",
		`{"api_key": null}`:            "sume/key: is JSON whose api_key is not a string",
		`{"api_key": "hunter2"`:        "sume/key: is neither",
		`"hunter2"`:                    "sume/key: is neither",
		`["hunter2"]`:                  "sume/key: is neither",
	} {
		_, err := apiKey(raw).Key(t.Context())
		var secret *secrets.Error
		if !errors.As(err, &secret) || !strings.HasPrefix(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: error %v, want one line %s…", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error holds the key: %v", err)
		}
	}
}

// The key is rotated while the old one is cached.
func TestRenew_Rotated(t *testing.T) {
	t.Parallel()
	key := apiKey(`{"api_key": "old"}`, `{"api_key": "new"}`, "newer")
	if got, err := key.Key(t.Context()); got != "old" || err != nil {
		t.Fatalf("first %q, %v", got, err)
	}
	for range 3 { // each read that was refused asks for itself
		if got, err := key.Renew(t.Context(), "old"); got != "new" || err != nil {
			t.Errorf("renewed %q, %v; want new", got, err)
		}
	}
}

func TestRenew_SameKey(t *testing.T) {
	t.Parallel()
	key := apiKey("old", "old", "new")
	for range 3 {
		if got, err := key.Renew(t.Context(), "old"); got != "old" || err != nil {
			t.Errorf("renewed %q, %v; want old", got, err)
		}
	}
}

func TestRenew_Placeholder(t *testing.T) {
	t.Parallel()
	key := apiKey("old", "REPLACE_ME")
	if _, err := key.Key(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := key.Renew(t.Context(), "old"); err == nil {
		t.Error("no error")
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	const odd = `p# %?/:@[ "q`
	for name, test := range map[string]struct {
		raw  string
		want secrets.Login
	}{
		"managed by RDS": {`{"username": "app", "password": "p# %?/:@[ \"q"}`, secrets.Login{Username: "app", Password: odd}},
		"in full": {
			`{"username": "app", "password": "p", "host": "db", "port": 5433, "dbname": "jobs", "engine": "postgres"}`,
			secrets.Login{Username: "app", Password: "p", Host: "db", Port: 5433, Name: "jobs"},
		},
		"port as text, rest null": {
			`{"username": "app", "password": "p", "host": null, "port": "5433", "dbname": null}`,
			secrets.Login{Username: "app", Password: "p", Port: 5433},
		},
	} {
		got, err := secrets.NewCache(&fixed{[]string{test.raw}}).Login(t.Context(), "db")
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v, (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestLogin_Invalid(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                    "db: is no JSON object",
		"null":                                "db: is no JSON object",
		"hunter2":                             "db: is no JSON object",
		`{"username": "app"}`:                 "db: has no username or no password",
		`{"username": "app", "password": ""}`: "db: has no username or no password",
		`{"Username": "app", "password": "hunter2"}`:              "db: has no username or no password",
		`{"username": "app", "password": ["hunter2"]}`:            "db: its password is not a string",
		`{"username": "app", "password": "hunter2", "port": 0}`:   "db: its port is no number",
		`{"username": "app", "password": "hunter2", "port": "x"}`: "db: its port is no number",
	} {
		_, err := secrets.NewCache(&fixed{[]string{raw}}).Login(t.Context(), "db")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want %s…", raw, err, want)
		}
	}
}

func TestRenewLogin_Rotated(t *testing.T) {
	t.Parallel()
	c := secrets.NewCache(&fixed{[]string{
		`{"username": "app", "password": "old"}`, `{"username": "app", "password": "new"}`,
	}})
	old, err := c.Login(t.Context(), "db")
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := c.RenewLogin(t.Context(), "db", old)
	if renewed.Password != "new" || err != nil {
		t.Errorf("renewed %v", err)
	}
}
