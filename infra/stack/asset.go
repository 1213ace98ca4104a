package stack

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxAsset is the size, in bytes, past which a function's program is refused.
const maxAsset = 25 << 20

// AssetError lists the errors in the built functions, one line each.
type AssetError []string

// Error returns the lines.
func (e AssetError) Error() string { return strings.Join(e, "\n") }

// CheckAssets checks the built functions before anything is synthesized: each
// directory holds one executable for arm64, named bootstrap and under 25 MB, and
// nothing else. The error is of type AssetError.
func CheckAssets(dist string) error {
	var errs AssetError
	for _, short := range []string{"poller", "submit", "migrate"} {
		dir := filepath.Join(dist, short)
		if what := checkAsset(dir); what != "" {
			errs = append(errs, dir+": "+what)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

func checkAsset(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "no such directory; run `make build`"
	}
	if len(entries) != 1 || entries[0].Name() != "bootstrap" {
		return "must hold one file, named bootstrap; run `make build`"
	}
	info, err := os.Stat(filepath.Join(dir, "bootstrap"))
	switch {
	case err != nil || !info.Mode().IsRegular():
		return "bootstrap is not a file; run `make build`"
	case info.Mode().Perm()&0o111 == 0:
		return "bootstrap is not executable; run `make build`"
	case info.Size() >= maxAsset:
		return fmt.Sprintf("bootstrap has %d MB; want less than 25", info.Size()>>20)
	}
	program, err := elf.Open(filepath.Join(dir, "bootstrap"))
	if err != nil {
		return "bootstrap is not a Linux program; run `make build` without GOOS"
	}
	defer func() { _ = program.Close() }() // read only
	if program.Machine != elf.EM_AARCH64 {
		return fmt.Sprintf("bootstrap is built for %s, the functions run on arm64; run `make build` without GOARCH",
			strings.ToLower(strings.TrimPrefix(program.Machine.String(), "EM_")))
	}
	return ""
}
