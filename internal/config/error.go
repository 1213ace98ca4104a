package config

import (
	"slices"
	"strings"
)

// ValueError is one variable that cannot be used as it is.
type ValueError struct {
	Name    string // of the variable
	Problem string
	Want    string // a value that would be accepted
}

// Error returns one line.
func (e ValueError) Error() string { return e.Name + ": " + e.Problem + "; want " + e.Want }

// Errors are all the variables that cannot be used, at most one error each.
type Errors []ValueError

// Error returns one line for each variable.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil returns nil instead of an empty list.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// add records an error of a variable that has none yet.
func (e *Errors) add(name, problem, want string) {
	if !e.has(name) {
		*e = append(*e, ValueError{name, problem, want})
	}
}

// has reports whether one of the variables has an error.
func (e Errors) has(names ...string) bool {
	return slices.ContainsFunc(e, func(err ValueError) bool { return slices.Contains(names, err.Name) })
}
