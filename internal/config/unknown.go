package config

import (
	"slices"
	"strings"
)

// prefixes are those of the variables that only this program uses.
var prefixes = []string{"DATABASE_", "MIGRATE_", "POLL_", "SUME_"}

// Unknown returns one line that names the variables of an environment which
// have one of the product's prefixes and which no function reads, each with the
// known name that is closest to it. It is empty if there is none. It holds no
// value.
func Unknown(environ []string) string {
	known := Variables()
	var lines []string
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(variable, "=")
		ours := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !ours || slices.ContainsFunc(known, func(v Variable) bool { return v.Name == name }) {
			continue
		}
		closest := slices.MinFunc(known, func(a, b Variable) int { return distance(name, a.Name) - distance(name, b.Name) }).Name
		if line := "unknown variable " + name; distance(name, closest) <= 3 {
			lines = append(lines, line+": did you mean "+closest+"?")
		} else {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// distance is the number of letters to insert, delete or replace between two
// names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
