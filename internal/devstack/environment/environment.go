// Package environment removes the caller's settings: a PGSSLMODE, DATABASE_URL
// or AWS_PROFILE of the shell must not change what make run or a test does.
package environment

import (
	"os"
	"strings"
)

// prefixes are those of the variables that the libraries of PostgreSQL and AWS
// read, and of those that configure the functions.
var prefixes = []string{"PG", "AWS_", "DATABASE_", "SUME_", "POLL_", "MIGRATE_"}

// kept has a prefix of PostgreSQL's variables but is read by package server.
const kept = "PG_BIN"

// noFile is an empty file.
const noFile = "/dev/null"

// AWS makes the AWS libraries read no file in the home directory.
var AWS = map[string]string{"AWS_CONFIG_FILE": noFile, "AWS_SHARED_CREDENTIALS_FILE": noFile}

// Isolate removes such variables from this process and from those that it
// starts. It sets the locale to C, since initdb fails with one that is not
// installed. Call it before anything reads the variables.
func Isolate() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == kept {
			continue
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				_ = os.Unsetenv(name) // never fails for an existing name
			}
		}
	}
	_ = os.Setenv("LC_ALL", "C")
	for name, value := range AWS {
		_ = os.Setenv(name, value)
	}
}
