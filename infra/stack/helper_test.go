package stack_test

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

// check makes the test fail if the assertion panics.
func check(t *testing.T, assert func()) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%v", r)
		}
	}()
	assert()
}

// resource is one resource of a template.
type resource struct {
	Type                string
	Properties          map[string]any
	DependsOn           []string
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// resources returns a template's resources of the types named, or all, by their
// logical ids.
func resources(t *testing.T, template assertions.Template, types ...string) map[string]resource {
	t.Helper()
	var parsed struct{ Resources map[string]resource }
	remarshal(t, template.ToJSON(), &parsed)
	for id, r := range parsed.Resources {
		if len(types) > 0 && !slices.Contains(types, r.Type) {
			delete(parsed.Resources, id)
		}
	}
	return parsed.Resources
}

// only returns the single resource of a type; with a property and a value, the
// single one that has this value.
func only(t *testing.T, template assertions.Template, kind string, with ...string) (string, resource) {
	t.Helper()
	all := resources(t, template, kind)
	for id, r := range all {
		if len(with) == 2 && asJSON(t, r.Properties[with[0]]) != with[1] {
			delete(all, id)
		}
	}
	if len(all) != 1 {
		t.Fatalf("got %d of %s %v, want one", len(all), kind, with)
	}
	for id, r := range all {
		return id, r
	}
	panic("unreachable")
}

// asJSON returns a value as JSON, a string without its quotes. A value that
// CloudFormation fills in looks like {"Ref":"SumeApiKey"}.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	if s, ok := value.(string); ok {
		return s
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func remarshal(t *testing.T, from, to any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Machine numbers of ELF.
const (
	arm64 = 183
	amd64 = 62
)

// program returns the header of a Linux program, without a body.
func program(machine uint16) []byte {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(header[16:], 2) // executable
	binary.LittleEndian.PutUint16(header[18:], machine)
	binary.LittleEndian.PutUint32(header[20:], 1)
	binary.LittleEndian.PutUint16(header[52:], 64)
	binary.LittleEndian.PutUint16(header[54:], 56)
	binary.LittleEndian.PutUint16(header[58:], 64)
	return header
}
