//go:build !linux

package local_test

import (
	"testing"
	"time"
)

var began = time.Now()

// cpuTime is the time on the clock, for systems without a processor time of threads.
func cpuTime(testing.TB) time.Duration { return time.Since(began) }
