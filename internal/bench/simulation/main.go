package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

// Main runs days and writes the results as a JSON array, in the order of the
// days. It ends the process: synctest needs a test, and the end of the tests
// ends the program.
func Main(days []Day, out io.Writer) {
	results := make([]Result, len(days))
	tests := make([]testing.InternalTest, 0, len(days)+1)
	for i, d := range days {
		tests = append(tests, testing.InternalTest{Name: fmt.Sprintf("day %d", i+1), F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				if results[i], err = Run(d); err != nil {
					t.Errorf("%+v: a run failed: %v", d, err)
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
