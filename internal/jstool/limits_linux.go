package jstool

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxFiles = 32 // that a host may open
	niceness = 10 // so that tools do not delay audio
	// processorTime is how much longer a host may compute after the start of a call: for hosts that lost their gateway.
	processorTime = 10 * time.Minute
)

// self is this program, even if its file was replaced by another version.
func self() (string, error) { return "/proc/self/exe", nil }

// limitProcess limits the resources of a host. RLIMIT_AS would count address space that Go reserves and never uses.
func limitProcess() error {
	limits := map[int]uint64{unix.RLIMIT_DATA: dataLimit, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0}
	for what, most := range limits {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("setpriority: %w", err)
	}
	return nil
}

func extendProcessorTime() {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return
	}
	seconds := uint64(used.Utime.Sec+used.Stime.Sec) + uint64(processorTime/time.Second)     //nolint:gosec // not negative
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: unix.RLIM_INFINITY}) // the last limit stays
}
