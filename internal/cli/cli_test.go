package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/cli"
)

func TestShowProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		stop := cli.ShowProgress(&out, "make backfill", 10*time.Second)
		time.Sleep(25 * time.Second)
		stop()
		if want := "make backfill: no answer yet, 10s\nmake backfill: no answer yet, 20s\n"; out.String() != want {
			t.Errorf("wrote %q, want %q", out.String(), want)
		}
	})
}
