// Command bench measures this program: how soon the end of a job is known and
// at how many reads, reads a second compared with other ways, what claims cost
// the database, and what an idle function costs. docs/benchmarks.md shows the
// figures and says how each is taken.
//
//	go run ./internal/bench              all scenes, some eight minutes
//	go run ./internal/bench throughput   one scene, or several
//
// The medians go to the terminal and into bench.json; a scene that is measured
// alone replaces only its own figures there. No network is needed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sumepoller/internal/devstack"
	"sumepoller/internal/devstack/environment"
)

// rounds is how often each figure is taken. The figures of a scene are taken
// in turn, so that a slow minute of the machine hits all of them.
const rounds = 5

// sceneNames are the parts of the benchmark, in the order in which they run.
var sceneNames = []string{"throughput", "claims", "detection", "idle", "sandboxes"}

var measure = map[string]func(ctx context.Context, s *scene) error{
	"throughput": throughput, "claims": claims, "detection": detection, "idle": idle, "sandboxes": sandboxes,
}

func main() {
	environment.Isolate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	var err error
	if len(args) == 1 && slices.Contains([]string{roleLoad, roleDays}, args[0]) {
		err = play(ctx, args[0])
	} else {
		err = bench(ctx, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// bench measures the named scenes, or all, and saves each when it is done.
func bench(ctx context.Context, names []string) error {
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, "bench.json")
	r, err := loadReport(path)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = sceneNames
	}
	var failed []error
	for _, name := range names {
		if measure[name] == nil {
			return fmt.Errorf("no scene %q; there are %s", name, strings.Join(sceneNames, ", "))
		}
		s := newScene()
		if err := measure[name](ctx, s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		s.print(os.Stdout, name, r[name])
		r[name] = s
		if err := r.save(path); err != nil {
			return err
		}
	}
	if s := r["detection"]; s != nil {
		failed = append(failed, draw(s, filepath.Join(root, "docs", "detection.svg")))
	}
	return errors.Join(failed...)
}
