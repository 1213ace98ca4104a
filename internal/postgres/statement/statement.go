// Package statement reads SQL statements from .sql files.
//
// A name in braces stands for a fragment: {due} for the file due.sql, of the
// statement's own directory or of this one. {elapsed v.created_at} is the
// fragment elapsed with v.created_at for {column}. The fragments of this
// directory are the conditions and conversions that several stores share.
package statement

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"
)

// LongestLease bounds a lease, however often leases of its row were lost. It is
// @longest_lease in the fragment unleased, unless a claim asks for a longer one.
const LongestLease = 15 * time.Minute

//go:embed *.sql
var shared embed.FS

var reference = regexp.MustCompile(`\{(\w+)(?: ([\w.]+))?\}`)

// Read returns the statement in the file name.sql, without comment lines and
// with its fragments filled in. A missing file is a mistake in the program:
// Read panics.
func Read(files fs.FS, name string) string {
	return strings.TrimSpace(fill(files, name, ""))
}

func fill(files fs.FS, name, column string) string {
	text, err := fs.ReadFile(files, name+".sql")
	if err != nil {
		text, err = shared.ReadFile(name + ".sql")
	}
	if err != nil {
		panic(fmt.Sprintf("no SQL fragment %q", name))
	}
	var lines strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(text), "{column}", column)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			lines.WriteString(line)
		}
	}
	return reference.ReplaceAllStringFunc(strings.TrimSuffix(lines.String(), "\n"), func(found string) string {
		part := reference.FindStringSubmatch(found)
		return fill(files, part[1], part[2])
	})
}
