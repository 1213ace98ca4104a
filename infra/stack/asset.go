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

// AssetError is all that is wrong with the built functions, one line each.
type AssetError []string

// Error returns the lines.
func (e AssetError) Error() string { return strings.Join(e, "\n") }

// CheckAssets looks at the built functions before anything is synthesized: each
// folder holds one executable for the functions' processor, named bootstrap and
// under 25 MB, and nothing else. The error is of type AssetError.
func CheckAssets(dist string) error {
	var faults AssetError
	for _, short := range []string{"poller", "submit", "migrate"} {
		folder := filepath.Join(dist, short)
		if what := checkAsset(folder); what != "" {
			faults = append(faults, folder+": "+what)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

func checkAsset(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "no such folder; run `make build`"
	}
	if len(entries) != 1 || entries[0].Name() != "bootstrap" {
		return "holds something else than one file named bootstrap; run `make build`"
	}
	info, err := os.Stat(filepath.Join(folder, "bootstrap"))
	switch {
	case err != nil || !info.Mode().IsRegular():
		return "bootstrap is no file; run `make build`"
	case info.Mode().Perm()&0o111 == 0:
		return "bootstrap is not executable; run `make build`"
	case info.Size() >= maxAsset:
		return fmt.Sprintf("bootstrap has %d MB; at most 25 are wanted", info.Size()>>20)
	}
	program, err := elf.Open(filepath.Join(folder, "bootstrap"))
	if err != nil {
		return "bootstrap is no Linux program; run `make build` without GOOS"
	}
	defer func() { _ = program.Close() }() // read only
	if program.Machine != elf.EM_AARCH64 {
		return fmt.Sprintf("bootstrap is built for %s, the functions run on arm64; run `make build` without GOARCH",
			strings.ToLower(strings.TrimPrefix(program.Machine.String(), "EM_")))
	}
	return ""
}
