package process

import (
	"fmt"
	"os"
	"strconv"
)

// Read returns a process's resource usage. pid 0 means the current process.
func Read(pid int) (Usage, error) {
	dir := "/proc/self"
	if pid != 0 {
		dir = "/proc/" + strconv.Itoa(pid)
	}
	line, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	u, err := parseStat(line, os.Getpagesize())
	if err != nil {
		return Usage{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	u.FDs = -1
	if entries, err := os.ReadDir(dir + "/fd"); err == nil {
		u.FDs = len(entries)
		if pid == 0 {
			u.FDs-- // the descriptor of this listing
		}
	}
	return u, nil
}
