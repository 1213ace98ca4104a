package devstack

import (
	"fmt"
	"os"
)

// logLimit is how much of a function's output Log returns, in bytes.
const logLimit = 8 << 20

// functionLog is the file that a function and its emulator write to. It is not
// a pipe, so that everything written before an answer can be read at once. The
// file has no name: its disk space is freed when the last process closes it.
type functionLog struct{ *os.File }

func newFunctionLog() (functionLog, error) {
	file, err := os.CreateTemp("", "function-*.log")
	if err != nil {
		return functionLog{}, fmt.Errorf("create the function's log: %w", err)
	}
	return functionLog{file}, os.Remove(file.Name())
}

// String returns the newest logLimit bytes.
func (l functionLog) String() string {
	info, err := l.Stat()
	if err != nil {
		return ""
	}
	size := min(info.Size(), logLimit)
	text := make([]byte, size)
	n, _ := l.ReadAt(text, info.Size()-size)
	return string(text[:n])
}
