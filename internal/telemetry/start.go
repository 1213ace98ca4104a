package telemetry

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda"
)

// Start serves invocations until the sandbox ends. If err, from making the
// handler, is not nil, it prints err and ends the process. It discards what
// libraries write to the standard library's logger: net/http quotes bytes there
// that a server sent unasked, and they can hold a signed URL. A panic of h is
// logged with its stack and then ends the process, as on Lambda.
func Start(h lambda.Handler, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" { // lambda says so through that logger
		fmt.Fprintln(os.Stderr, "not started by Lambda: AWS_LAMBDA_RUNTIME_API is not set; make run starts the functions on this machine")
		os.Exit(1)
	}
	silence()
	lambda.Start(panics{h, NewLogger(os.Stderr, slog.LevelError)})
}

// silence discards what is written through the standard library's logger.
func silence() { log.SetOutput(io.Discard) }

// panics logs the panics of a handler.
type panics struct {
	lambda.Handler
	log *slog.Logger
}

func (p panics) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.log.ErrorContext(ctx, "panic", "stack", string(debug.Stack()))
			panic(cause)
		}
	}()
	return p.Handler.Invoke(ctx, payload)
}
