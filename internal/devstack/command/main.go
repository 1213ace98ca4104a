// Command devstack is what the targets of the Makefile start:
//
//	devstack run                       the whole product on this machine
//	devstack postgres -- CMD …         CMD, with a PostgreSQL server of its own
//	devstack schema                    the whole schema as plain SQL
//
// The server's URL is in DEV_DATABASE_URL; where that is set already, no
// server is started. PG_BIN is the folder of its programs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sumepoller/migrations"
)

// exitInterrupted is what a shell makes of a program that Ctrl-C ended.
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

// schema prints the schema's SQL and returns the exit code.
func schema() int {
	sql, err := migrations.Schema()
	if err == nil {
		_, err = os.Stdout.WriteString(sql)
	}
	return exitCode(err)
}
