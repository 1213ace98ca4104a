// Package environment keeps the caller's settings away from what runs here for
// development: a PGSSLMODE, a DATABASE_URL or an AWS_PROFILE of the shell that
// make was called from must not steer the local stack or a test.
package environment

import (
	"os"
	"strings"
)

// foreign are the beginnings of the variables that the drivers of PostgreSQL
// and AWS read by themselves, and of those that configure the functions.
var foreign = []string{"PG", "AWS_", "DATABASE_", "SUME_", "POLL_", "MIGRATE_"}

// kept begins as libpq's variables do, and is the development's own.
const kept = "PG_BIN"

// noFile is a file without settings.
const noFile = "/dev/null"

// AWS has AWS's libraries read no file of the user's home directory.
var AWS = map[string]string{"AWS_CONFIG_FILE": noFile, "AWS_SHARED_CREDENTIALS_FILE": noFile}

// Isolate removes such variables from this process, and with it from every
// process that it starts, and sets the locale to C: initdb fails in one that is
// not installed. To be called before anything reads them.
func Isolate() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == kept {
			continue
		}
		for _, beginning := range foreign {
			if strings.HasPrefix(name, beginning) {
				_ = os.Unsetenv(name) // fails for no name that stands there
			}
		}
	}
	_ = os.Setenv("LC_ALL", "C")
	for name, value := range AWS {
		_ = os.Setenv(name, value)
	}
}
