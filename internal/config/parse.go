package config

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// parse fills the struct that cfg points to from its tags. It returns the
// variables that are missing or do not parse. An empty value counts as not set.
func parse(cfg any, environ []string) Errors {
	values := env.ToMap(environ)
	for name, value := range values {
		if value == "" {
			delete(values, name)
		}
	}
	var all env.AggregateError
	var errs Errors
	if err := env.ParseWithOptions(cfg, env.Options{Environment: values}); !errors.As(err, &all) {
		return nil
	}
	names := map[string]string{}
	for _, v := range variables(reflect.TypeOf(cfg).Elem()) {
		names[v.field] = v.Name
	}
	for _, err := range all.Errors {
		var missing env.VarIsNotSetError
		var wrong env.ParseError
		switch {
		case errors.As(err, &missing):
			errs.add(missing.Key, "not set", forms[missing.Key])
		case errors.As(err, &wrong):
			name := names[wrong.Name]
			errs.add(name, shown(values[name])+" does not parse", form(name, wrong.Type))
		default:
			errs.add("environment", err.Error(), "the documented variables")
		}
	}
	return errs
}

// Variable is an environment variable that a function reads.
type Variable struct {
	Name    string
	Default string // as it would be set; empty: none

	field string // no two of one configuration have the same
}

// Variables returns the variables of all functions. Some are in it twice.
func Variables() []Variable {
	all := variables(reflect.TypeFor[Poller]())
	all = append(all, variables(reflect.TypeFor[Submit]())...)
	return append(all, variables(reflect.TypeFor[Migrate]())...)
}

func variables(t reflect.Type) []Variable {
	var all []Variable
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case name != "":
			all = append(all, Variable{name, field.Tag.Get("envDefault"), field.Name})
		case field.Type.Kind() == reflect.Struct:
			all = append(all, variables(field.Type)...)
		}
	}
	return all
}

// forms are the values that a variable accepts, where its type does not say.
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
	return "an integer"
}

var plain = regexp.MustCompile(`^[0-9A-Za-z.,+µ -]{1,16}$`)

// shown quotes a value, unless it could be a secret in the wrong variable.
func shown(value string) string {
	if !plain.MatchString(value) {
		return "the value"
	}
	return fmt.Sprintf("%q", value)
}
