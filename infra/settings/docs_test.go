package settings_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"sumepoller/infra/settings"
	"sumepoller/internal/config"
)

// docs/configuration.md names each key of the settings, with its default. Where a
// key sets a variable of the poller, both have one default.
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
	got, want := settings.Defaults(), config.Defaults()
	budget, err := time.ParseDuration(got.Budget)
	if err != nil || got.ReadsPerMinute != want.Reads.PerMinute || got.ReadsPerDay != want.Reads.PerDay ||
		budget != want.Poll.Budget || got.Concurrency != want.Poll.Concurrency {
		t.Errorf("got %+v, the poller's defaults are %+v, %+v", got, want.Reads, want.Poll)
	}
	defaults := reflect.ValueOf(got)
	for i := range defaults.NumField() {
		key, _, _ := strings.Cut(defaults.Type().Field(i).Tag.Get("json"), ",")
		value := defaults.Field(i)
		if value.IsZero() {
			continue
		}
		if text := fmt.Sprint(value); !strings.Contains(tables, "\n| `"+key+"` | "+text+" |") && !strings.Contains(tables, "\n| `"+key+"` | `"+text+"` |") {
			t.Errorf("docs/configuration.md does not say that the default of %s is %s", key, text)
		}
	}
}
