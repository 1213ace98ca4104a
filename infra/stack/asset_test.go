package stack_test

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/infra/stack"
)

func TestCheckAssets(t *testing.T) {
	write := func(t *testing.T, path string, data []byte, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"no directory": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, "no such directory; run `make build`"},
		"empty directory": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "bootstrap")); err != nil {
				t.Fatal(err)
			}
		}, "must hold one file, named bootstrap"},
		"second file": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "notes"), nil, 0o644) },
			"must hold one file, named bootstrap",
		},
		"other processor": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "bootstrap"), program(amd64), 0o755) },
			"built for x86_64, the functions run on arm64; run `make build` without GOARCH",
		},
		"shell script": {
			func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "bootstrap"), []byte("#!/bin/sh\n"), 0o755)
			},
			"not a Linux program",
		},
		"not executable": {func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "bootstrap"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "not executable"},
		"25 MB": {func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "bootstrap"), 25<<20); err != nil {
				t.Fatal(err)
			}
		}, "has 25 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			dist := writeAssets(t.TempDir())
			dir := filepath.Join(dist, "submit")
			c.spoil(t, dir)
			err := stack.CheckAssets(dist)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), dir+": ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

// Builds in two directories give the same bytes, so that a commit that changes no
// code deploys nothing. The programs are the real ones.
func TestBuild_Reproducible(t *testing.T) {
	var builds [2]map[string][32]byte
	for i := range builds {
		root := filepath.Join(t.TempDir(), []string{"one", "two"}[i])
		for _, part := range []string{"go.mod", "go.sum", "Makefile", "functions", "internal", "migrations"} {
			copyTree(t, filepath.Join("..", "..", part), filepath.Join(root, part))
		}
		build := exec.Command("make", "-C", root, "build")
		// go test and an outer make set variables that would change the build.
		build.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=")
			return slices.Contains([]string{"GOARCH", "GOOS", "GOFLAGS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name)
		})
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("make build: %v\n%s", err, out)
		}
		dist := filepath.Join(root, "dist")
		if err := stack.CheckAssets(dist); err != nil {
			t.Error(err)
		}
		builds[i] = map[string][32]byte{}
		for _, name := range []string{"poller", "submit", "migrate"} {
			data, err := os.ReadFile(filepath.Join(dist, name, "bootstrap"))
			if err != nil {
				t.Fatal(err)
			}
			builds[i][name] = sha256.Sum256(data)
		}
	}
	if diff := cmp.Diff(builds[0], builds[1]); diff != "" {
		t.Error(diff)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		var data []byte
		if data, err = os.ReadFile(from); err == nil {
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Without credentials and AWS variables, the CDK neither asks for a look-up nor
// writes the placeholder that it uses for a missing one.
func TestSynth_NoLookups(t *testing.T) {
	for name, s := range map[string]synthesis{"given": given, "made": made, "passwords": passwords} {
		var manifest struct {
			Missing []any
		}
		data, err := os.ReadFile(filepath.Join(s.out, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &manifest); err != nil {
			t.Fatal(err)
		}
		if len(manifest.Missing) > 0 {
			t.Errorf("%s: looks up %v", name, manifest.Missing)
		}
		all := asJSON(t, s.app.ToJSON())
		if s.data != nil {
			all += asJSON(t, s.data.ToJSON())
		}
		for _, placeholder := range []string{"vpc-12345", "s-12345", "p-12345", "sg-12345", "dummy1", "unknown-"} {
			if strings.Contains(all, placeholder) {
				t.Errorf("%s: got %s", name, placeholder)
			}
		}
	}
}

// The stack names its account and region, so that the command line refuses a
// deploy with another account's credentials.
func TestSynth_AccountAndRegion(t *testing.T) {
	if got := *given.stacks.App.Account() + " " + *given.stacks.App.Region(); got != "111122223333 eu-central-1" {
		t.Errorf("got %s", got)
	}
}
