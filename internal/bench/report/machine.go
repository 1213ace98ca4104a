package report

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine says where figures were taken, and of what.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Memory   string `json:"memory"`
	System   string `json:"system"`
	Go       string `json:"go"`
	Postgres string `json:"postgres,omitempty"`
	Commit   string `json:"commit"` // + where the tree differs from it
}

// ThisMachine looks at the machine and the repository around the working
// folder. What cannot be found out is empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: runtime.GOARCH, System: runtime.GOOS}
	if v := field("/proc/cpuinfo", "model name"); v != "" {
		m.CPU = v + ", " + runtime.GOARCH
	}
	m.Memory = field("/proc/meminfo", "MemTotal")
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(kernel))
	}
	m.Commit = git("rev-parse", "--short", "HEAD")
	if m.Commit != "" && git("status", "--porcelain", "--untracked-files=no", "--", "*.go", "*.sql", "go.mod") != "" {
		m.Commit += "+"
	}
	return m
}

func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func git(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
