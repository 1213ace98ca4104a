package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

// Main plays scenes at the same time, each in a bubble of its own, and writes
// the results as a JSON array in the order of the scenes. It ends the process:
// a bubble needs a test, and a test ends its program.
func Main(scenes []Scene, out io.Writer) {
	results := make([]Result, len(scenes))
	tests := make([]testing.InternalTest, 0, len(scenes)+1)
	for i, s := range scenes {
		tests = append(tests, testing.InternalTest{Name: fmt.Sprintf("scene %d", i+1), F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				if results[i], err = PlayDay(s); err != nil {
					t.Errorf("%+v: a run failed: %v", s, err)
				}
			})
		}})
	}
	tests = append(tests, testing.InternalTest{Name: "results", F: func(t *testing.T) {
		if err := json.NewEncoder(out).Encode(results); err != nil {
			t.Error(err)
		}
	}})
	os.Args = os.Args[:1]
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}
