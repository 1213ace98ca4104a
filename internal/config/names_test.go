package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/config"
)

// Each constant of names.go is the tag of a configuration, and each tag is one.
func TestVariables(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants, tags []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			if name, _ := strconv.Unquote(literal.Value); regexp.MustCompile(`^(DATABASE|LOG|MIGRATE|POLL|SUME)_[A-Z_]+$`).MatchString(name) {
				constants = append(constants, name)
			}
		}
		return true
	})
	for _, v := range config.Variables() {
		tags = append(tags, v.Name)
	}
	slices.Sort(constants)
	slices.Sort(tags)
	if diff := cmp.Diff(slices.Compact(tags), constants); diff != "" {
		t.Errorf("names.go (-tags +constants):\n%s", diff)
	}
}

// The defaults in the documents' tables are those of the program.
func TestVariables_Documented(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	row, word := regexp.MustCompile("(?m)^\\| (`[A-Z_]+`.*?) \\| (`[^|]+`) \\|"), regexp.MustCompile("`[^`]+`")
	documented := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
			names, defaults := word.FindAllString(cells[1], -1), word.FindAllString(cells[2], -1)
			for i := range min(len(names), len(defaults)) {
				documented[strings.Trim(names[i], "`")] = strings.Trim(defaults[i], "`")
			}
		}
	}
	found := 0
	for _, v := range config.Variables() {
		got, ok := documented[v.Name]
		if ok && got != v.Default {
			t.Errorf("%s: the documented default is %q, want %q", v.Name, got, v.Default)
		}
		if ok {
			found++
		}
	}
	if found < 13 {
		t.Errorf("%d variables found in the documents, want at least 13", found)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    string
	}{
		"none":               {append(needed(), "POLL_BUDGET=", "MIGRATE_ROLE_AUTH=iam", "AWS_REGION=x", "POLLER=x", "PATH=/bin"), ""},
		"misspelt":           {[]string{"POLL_BUGET=hunter2"}, "unknown variable POLL_BUGET: did you mean POLL_BUDGET?"},
		"unlike a known one": {[]string{"SUME_COLOUR_OF_THE_SKY=hunter2"}, "unknown variable SUME_COLOUR_OF_THE_SKY"},
		"two": {
			[]string{"POLL_LEASES=1", "DATABASE_HOSTS=a=b"},
			"unknown variable DATABASE_HOSTS: did you mean DATABASE_HOST?; unknown variable POLL_LEASES: did you mean POLL_LEASE?",
		},
	} {
		if got := config.Unknown(test.environ); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
