// Package cli is what make status, backfill, stop and submit start: it sends
// one request to a function and prints the answer. The request goes to the
// stack of the settings, through AWS's SDK, or to the address in FUNCTION_URL.
//
// Its arguments are environment variables, so that make passes them verbatim:
//
//	JOB           job ids, separated by commas (status, stop, backfill)
//	IDS           a file of job ids, one a line or a CSV's first column; - is standard input (same)
//	FILE          the request's JSON; - is standard input (backfill, submit)
//	STATE         shows only the jobs in this state, of those that JOB and IDS name (status)
//	FORMAT        json: prints the answer as JSON
//	SETTINGS      the stack's settings; infra/settings.json where it is not set
//	FUNCTION_URL  a function's address, used instead of the stack
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sumepoller/infra/settings"
)

const (
	requestTimeout = 16 * time.Minute // longer than a function can run
	progressEvery  = 10 * time.Second
	maxPayload     = 6 << 20 // Lambda's limit for a request and for an answer, in bytes
)

// Run sends the request that args names (status, backfill, stop or submit) and
// returns the exit code: 0, 1 for a failed request, 2 for bad arguments, with
// nothing sent. An error is one line on stderr.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	r, err := newRequest(args, stdin)
	if err != nil {
		fmt.Fprintf(stderr, "make %s: %v\n", r.kind, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stop := showProgress(stderr, "make "+r.kind, progressEvery)
	answer, err := r.send(ctx, stderr)
	stop()
	if err == nil {
		err = r.check(answer)
	}
	if err == nil {
		err = r.print(stdout, answer)
	}
	if err == nil {
		return 0
	}
	hint := ""
	if r.kind == kindSubmit && !errors.As(err, new(notSent)) && !errors.As(err, new(*functionError)) {
		hint = "; whether the order was sent is unknown: run it again with the same key, which pays once"
	}
	fmt.Fprintf(stderr, "make %s: %v%s\n", r.kind, err, hint)
	return 1
}

// notSent is the error of a request that has certainly not reached a function.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// send invokes the function and returns its answer, or the description of its
// error.
func (r request) send(ctx context.Context, stderr io.Writer) ([]byte, error) {
	if address := os.Getenv("FUNCTION_URL"); address != "" {
		return post(ctx, address, r.payload)
	}
	path := cmp.Or(os.Getenv("SETTINGS"), settings.Path)
	if _, err := os.Stat(path); err != nil {
		return nil, notSent{fmt.Errorf("which stack? Name its settings in SETTINGS, or set FUNCTION_URL: %w", err)}
	}
	s, err := settings.Load(path)
	if err != nil {
		return nil, notSent{err}
	}
	return invoke(ctx, s, path, s.FunctionName(r.function()), r.payload, stderr)
}

// showProgress writes a line every now and then until stop is called.
func showProgress(w io.Writer, label string, every time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(w, "%s: no answer yet, %s\n", label, time.Since(began).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
