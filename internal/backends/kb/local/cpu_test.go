//go:build linux

package local_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of this thread, independent of other processes.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(t.Nano())
}
