// Command bench measures this program: what a day costs in reads and how soon
// an end is known, reads a second beside two other ways, what a read costs the
// database, and what an idle function costs. It needs no network.
//
//	go run ./internal/bench              everything, some twelve minutes
//	go run ./internal/bench throughput   one section, or some
//
// The API, the loads and the simulated days are processes of their own: what
// one of them uses is not another's, and a load's share of the processors can
// be limited alone. On a machine of two cores they share these; the ratios are
// taken side by side in one run and suffer least from that. The results go to
// the terminal and into bench.json, from which the picture and the table of
// costs are made; a section measured alone takes the place of its earlier self
// there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sumepoller/internal/bench/report"
	"sumepoller/internal/devstack"
	"sumepoller/internal/devstack/environment"
)

// rounds is how often each figure is taken, in turn with the others.
const rounds = 5

// section is a part of the benchmark.
type section struct {
	name string
	take func(ctx context.Context, s *report.Section) error
}

// sections in the order in which they are taken and told.
var sections = []section{
	{"detection", detection},
	{"throughput", throughput},
	{"limited", limited},
	{"sandboxes", sandboxes},
	{"claims", claims},
	{"snapshot", snapshot},
	{"idle", idle},
}

func main() {
	environment.Isolate()
	ctx, stop := interrupted()
	defer stop()
	args := os.Args[1:]
	var err error
	if len(args) == 1 && slices.Contains([]string{roleAPI, roleLoad, roleScene}, args[0]) {
		err = play(ctx, args[0])
	} else {
		err = bench(ctx, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// bench takes the sections named, or all, and writes what came of them.
func bench(ctx context.Context, names []string) error {
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, "bench.json")
	r, err := report.Load(path)
	if err != nil {
		return err
	}
	known := []string{"documents"}
	for _, s := range sections {
		known = append(known, s.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no section %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	var failed []error
	for _, s := range sections {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		if err := take(ctx, s, r); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		if err := r.Save(path); err != nil {
			return err
		}
	}
	return errors.Join(append(failed, documents(r, root))...)
}

// take measures one section and prints it.
func take(ctx context.Context, part section, r *report.Report) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := report.New(part.name)
	s.Taken, s.Machine = time.Now().UTC().Truncate(time.Second), report.ThisMachine()
	if err := part.take(ctx, s); err != nil {
		return err
	}
	s.Seconds = time.Since(s.Taken).Truncate(time.Second).Seconds()
	s.Write(os.Stdout)
	s.Compare(os.Stdout, r.Section(s.Name))
	r.Put(s)
	return nil
}
