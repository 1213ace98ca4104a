// Command actor is a Lambda function that does what its payload says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

type request struct {
	Do string `json:"do"` // env, pid, fail, panic, exit, wait
	MS int    `json:"ms"` // of wait
}

func main() {
	lambda.Start(func(_ context.Context, r request) (any, error) {
		fmt.Println("asked to", r.Do)
		switch r.Do {
		case "env":
			return os.Environ(), nil
		case "fail":
			return nil, errors.New("it did not work")
		case "panic":
			panic("out of order")
		case "exit":
			os.Exit(3)
		case "wait":
			time.Sleep(time.Duration(r.MS) * time.Millisecond)
		}
		return os.Getpid(), nil
	})
}
