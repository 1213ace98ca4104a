package config

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Fault is one variable that cannot be used as it is.
type Fault struct {
	Name string // of the variable
	What string // is wrong with it
	Want string // form that would do
}

// String returns the fault as one line.
func (f Fault) String() string { return f.Name + ": " + f.What + "; want " + f.Want }

// Faults are all that is wrong with an environment.
type Faults []Fault

// Error returns one line per fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// err returns nil where there is no fault, so that no empty Faults becomes an
// error.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// add notes a fault of a variable, once: the first one said is the plainest.
func (f *Faults) add(name, what, want string) {
	if !f.names(name) {
		*f = append(*f, Fault{Name: name, What: what, Want: want})
	}
}

func (f *Faults) names(names ...string) bool {
	return slices.ContainsFunc(*f, func(fault Fault) bool { return slices.Contains(names, fault.Name) })
}

// parse fills the struct that cfg points to from its tags and returns what
// would not parse or is missing. A variable that is set to nothing counts as
// not set.
func parse(cfg any, environ []string) Faults {
	vars := env.ToMap(environ)
	for name, value := range vars {
		if value == "" {
			delete(vars, name)
		}
	}
	var all env.AggregateError
	var faults Faults
	if err := env.ParseWithOptions(cfg, env.Options{Environment: vars}); !errors.As(err, &all) {
		return nil
	}
	names := variables(reflect.TypeOf(cfg).Elem())
	for _, err := range all.Errors {
		var missing env.VarIsNotSetError
		var wrong env.ParseError
		switch {
		case errors.As(err, &missing):
			faults.add(missing.Key, "not set", forms[missing.Key])
		case errors.As(err, &wrong):
			name := names[wrong.Name]
			faults.add(name, shown(vars[name])+" does not parse", form(name, wrong.Type))
		default:
			faults.add("environment", err.Error(), "the variables as documented")
		}
	}
	return faults
}

// variables maps field names, which no two structs of one configuration share,
// to the variables in their tags.
func variables(t reflect.Type) map[string]string {
	names := map[string]string{}
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case tag != "":
			names[field.Name] = tag
		case field.Type.Kind() == reflect.Struct:
			for name, tag := range variables(field.Type) {
				names[name] = tag
			}
		}
	}
	return names
}

// forms are what variables want that a type does not tell.
var forms = map[string]string{
	APIKeySecretID: "the id or ARN of the secret that holds the API key",
	LogLevel:       "debug, info, warn or error",
}

func form(name string, t reflect.Type) string {
	if want, ok := forms[name]; ok {
		return want
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 15s"
	case reflect.TypeFor[slog.Level]():
		return forms[LogLevel]
	}
	return "a whole number"
}

var plain = regexp.MustCompile(`^[0-9A-Za-z.,+µ -]{1,16}$`)

// shown quotes a value that can hardly be a secret put into the wrong variable.
func shown(value string) string {
	if !plain.MatchString(value) {
		return "the value"
	}
	return fmt.Sprintf("%q", value)
}
