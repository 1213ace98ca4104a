package devstack_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sumepoller/internal/devstack"
)

// everything is the list of a development room, which may import all rooms.
var everything = []string{"*"}

// served are the rooms that a function may import.
var served = []string{
	"internal/config", "internal/poller", "internal/postgres", "internal/secrets",
	"internal/operator", "internal/submit", "internal/sume", "internal/telemetry",
}

// arrows holds every room and the rooms that it may import. A package below a
// room belongs to it, unless it is a room itself.
var arrows = map[string][]string{
	"functions/poller":       served,
	"functions/submit":       served,
	"functions/migrate":      append(slices.Clone(served), "migrations"),
	"infra":                  {"infra/settings", "internal/config", "internal/telemetry"},
	"infra/settings":         {"internal/strictjson"},
	"internal/bench":         everything,
	"internal/cli":           {"infra/settings", "internal/operator"},
	"internal/config":        nil,
	"internal/devstack":      everything,
	"internal/operator":      {"internal/strictjson"},
	"internal/pgtest":        everything,
	"internal/poller":        nil,
	"internal/postgres":      {"internal/config", "internal/operator", "internal/poller", "internal/secrets", "internal/submit"},
	"internal/secrets":       nil,
	"internal/strictjson":    nil,
	"internal/submit":        {"internal/strictjson"},
	"internal/sume":          {"internal/poller", "internal/submit"},
	"internal/sume/sumetest": nil,
	"internal/telemetry":     {"internal/poller"},
	"migrations":             nil,
}

const module = "sumepoller/"

// room returns the room of a directory, or "".
func room(path string) string {
	for ; path != "."; path = filepath.Dir(path) {
		if _, ok := arrows[path]; ok {
			return path
		}
	}
	return ""
}

func TestRooms_Imports(t *testing.T) {
	t.Parallel()
	root, err := devstack.Root()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	walk := func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || name == "node_modules" || name == "cdk.out" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		from := room(filepath.Dir(rel))
		if from == "" {
			t.Errorf("%s is in no room", rel)
			return nil
		}
		seen[from] = true
		checkFile(t, path, rel, from)
		return nil
	}
	if err := filepath.WalkDir(root, walk); err != nil {
		t.Fatal(err)
	}
	for room := range arrows {
		if !seen[room] {
			t.Errorf("room %s is in the list but has no Go file", room)
		}
	}
}

// checkFile reports the imports that the file's room may not have.
func checkFile(t *testing.T, path, rel, from string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		inside, internal := strings.CutPrefix(imported, module)
		if !internal {
			continue
		}
		to := room(inside)
		allowed := arrows[from]
		if to != from && !slices.Equal(allowed, everything) && !slices.Contains(allowed, to) {
			t.Errorf("%s imports %s: %s may import %v only", rel, inside, from, allowed)
		}
	}
}
