package process

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Usage is a process's resource usage.
type Usage struct {
	// CPU is the user and system time over all cores.
	CPU time.Duration
	// RSS is the resident memory in bytes.
	RSS     int64
	Threads int
	// FDs is the number of open descriptors; -1 without permission.
	FDs int
}

// tick is the unit of times in /proc/<pid>/stat: USER_HZ is 100 on every architecture that Go supports on Linux.
const tick = 10 * time.Millisecond

var errStat = errors.New("malformed /proc/<pid>/stat")

// parseStat parses /proc/<pid>/stat (man 5 proc_pid_stat). The program's name is in parentheses and may itself contain
// parentheses.
func parseStat(line []byte, pageSize int) (Usage, error) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return Usage{}, errStat
	}
	// The first of these is field 3.
	fields := bytes.Fields(line[end+1:])
	number := func(field int) (int64, error) {
		if field-3 >= len(fields) {
			return 0, fmt.Errorf("%w: field %d is missing", errStat, field)
		}
		n, err := strconv.ParseInt(string(fields[field-3]), 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%w: field %d is %q", errStat, field, fields[field-3])
		}
		return n, nil
	}
	var values [4]int64
	for i, field := range []int{14, 15, 20, 24} { // utime, stime, num_threads, rss in pages
		n, err := number(field)
		if err != nil {
			return Usage{}, err
		}
		values[i] = n
	}
	return Usage{
		CPU:     time.Duration(values[0]+values[1]) * tick,
		Threads: int(values[2]),
		RSS:     values[3] * int64(pageSize),
	}, nil
}
