// Command devstack is started by targets of the Makefile:
//
//	devstack run              the whole product on this machine
//	devstack postgres -- CMD  CMD, with a new PostgreSQL server
//	devstack schema           the whole schema as plain SQL
//
// CMD gets the server's URL in DEV_DATABASE_URL, and in PG_BIN the directory of
// its programs. If DEV_DATABASE_URL is set already, no server is started.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sumepoller/migrations"
)

// exitInterrupted is a shell's exit code for a program that Ctrl-C ended.
const exitInterrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	ctx, interrupted := context.WithCancel(ctx)
	go watchMake(ctx, interrupted)
	code := command(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func command(ctx context.Context, args []string) int {
	switch {
	case len(args) > 2 && args[0] == "postgres" && args[1] == "--":
		return postgres(ctx, args[2:])
	case len(args) == 1 && args[0] == "schema":
		return schema()
	case len(args) == 1 && args[0] == "run":
		return run(ctx)
	}
	fmt.Fprintln(os.Stderr, "usage: devstack run | devstack schema | devstack postgres -- COMMAND …")
	return 2
}

// schema prints the schema as SQL and returns the exit code.
func schema() int {
	sql, err := migrations.Schema()
	if err == nil {
		_, err = os.Stdout.WriteString(sql)
	}
	return exitCode(err)
}
