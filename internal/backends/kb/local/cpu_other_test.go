//go:build !linux

package local_test

import (
	"testing"
	"time"
)

var began = time.Now()

// cpuTime is the time on the clock, where that of the processor is not known.
func cpuTime(testing.TB) time.Duration { return time.Since(began) }
