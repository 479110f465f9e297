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

// cpuOf returns the user and system time of a process.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may contain anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return sumTicks(strings.Fields(rest), 11, 12)
}

// cpuOfAll returns how long all cores were busy.
func cpuOfAll() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	return sumTicks(strings.Fields(line), 1, 2, 3, 6, 7, 8) // all except idle and waiting for disks
}

func sumTicks(fields []string, which ...int) (time.Duration, error) {
	var sum int
	for _, i := range which {
		if i >= len(fields) {
			return 0, errors.New("/proc has a form that is not known here")
		}
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, fmt.Errorf("/proc: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

// rssOf returns the resident memory of a process, in bytes.
func rssOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmRSS", pid)
}
