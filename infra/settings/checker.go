package settings

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"sumepoller/internal/strictjson"
)

// checker collects errors, at most one for each key.
type checker struct{ errs []*strictjson.Error }

func (c *checker) add(key, problem, want string) {
	known := func(e *strictjson.Error) bool { return e.Field == key || strings.HasPrefix(e.Field, key+"[") }
	if !slices.ContainsFunc(c.errs, known) {
		c.errs = append(c.errs, &strictjson.Error{Field: key, Problem: problem + "; want " + want})
	}
}

// optional checks a value that may be missing (empty).
func (c *checker) optional(key, value string, valid func(string) bool, want string) {
	if value != "" && !valid(value) {
		c.add(key, fmt.Sprintf("%.60q is invalid", value), want)
	}
}

func (c *checker) required(key, value string, valid func(string) bool, want string) {
	if value == "" {
		c.add(key, "missing", want)
	}
	c.optional(key, value, valid, want)
}

func (c *checker) list(key string, values []string, valid func(string) bool, want string) {
	if len(values) == 0 {
		c.add(key, "missing or empty", want)
	}
	for _, value := range values {
		c.required(key, value, valid, want)
	}
}

func (c *checker) number(key string, n, least, most int, want string) {
	if n < least || n > most {
		c.add(key, fmt.Sprintf("%d is invalid", n), want)
	}
}

const (
	secretWant = "a secret's full ARN, with the six characters at its end"
	keyWant    = "a key's ARN, arn:aws:kms:…:key/…, not an alias"
)

var (
	nameForm     = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	zoneForm     = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d[a-z-0-9]*[a-z]$`)
	hostForm     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	rdsHost      = regexp.MustCompile(`\.rds\.amazonaws\.com(\.cn)?$`)
	databaseForm = regexp.MustCompile(`^[^\x00-\x1f\x7f]{1,63}$`)
	resourceForm = regexp.MustCompile(`^(db|cluster|prx)-[A-Za-z0-9]+$`)
	secretForm   = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@!-]+-[A-Za-z0-9]{6}$`)
	keyForm      = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$`)
)

// retentionDays are the retention times that CloudWatch Logs accepts.
var retentionDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

func idForm(kind string) func(string) bool {
	return regexp.MustCompile(`^` + kind + `-([0-9a-f]{8}|[0-9a-f]{17})$`).MatchString
}

// stackName accepts what the names of functions, alarms and database roles can
// begin with. PostgreSQL refuses roles that begin with pg_.
func stackName(name string) bool {
	return len(name) <= 30 && nameForm.MatchString(name) && !strings.HasPrefix(name+"-", "pg-")
}

func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func budget(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d >= 5*time.Second && d <= time.Minute
}

func address(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && strings.Contains(text, ".")
}
