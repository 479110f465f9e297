package process

import (
	"fmt"
	"os"
	"strconv"
)

// Read says what a process takes. pid 0 is this one.
func Read(pid int) (Usage, error) {
	dir := "/proc/self"
	if pid != 0 {
		dir = "/proc/" + strconv.Itoa(pid)
	}
	line, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	u, err := parseStat(line, os.Getpagesize())
	if err != nil {
		return Usage{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	u.FDs = -1
	if entries, err := os.ReadDir(dir + "/fd"); err == nil {
		u.FDs = len(entries)
		if pid == 0 {
			u.FDs-- // that of looking
		}
	}
	return u, nil
}
