package settings_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sumepoller/infra/settings"
)

// docs/configuration.md names each key of the settings.
func TestParse_Documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "\n## Settings of the stack\n")
	for _, part := range []reflect.Type{reflect.TypeFor[settings.Settings](), reflect.TypeFor[settings.VPC](), reflect.TypeFor[settings.Database]()} {
		for i := range part.NumField() {
			key, _, _ := strings.Cut(part.Field(i).Tag.Get("json"), ",")
			if key != "new" && !strings.Contains(tables, "`"+key+"`") {
				t.Errorf("%s: the key %s is not in docs/configuration.md", part.Name(), key)
			}
		}
	}
}
