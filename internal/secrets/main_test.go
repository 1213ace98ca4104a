package secrets_test

import (
	"testing"

	"go.uber.org/goleak"
)

// An idle sandbox has nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
