//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc (proc(5)): USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// cpuOfAll returns how long all cores were busy.
func cpuOfAll() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	var sum int
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // all except idle and waiting for disks
		if i >= len(fields) {
			return 0, errors.New("/proc/stat has a form that is not known here")
		}
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
