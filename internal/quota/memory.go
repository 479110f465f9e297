package quota

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Use returns the memory in use after the last collection, and the runtime's limit; zero without one.
func Use() (held, limit uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/mspan/inuse:bytes"}, {Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/memory/classes/other:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			held += s.Value.Uint64()
		}
	}
	if most := debug.SetMemoryLimit(-1); most > 0 && most < math.MaxInt64 {
		limit = uint64(most)
	}
	return held, limit
}

// cgroupShare is the runtime's share; the rest is for the kernel's socket buffers and the like.
const cgroupShare = 0.9

// KeepToCgroup sets the memory limit from the cgroup, unless GOMEMLIMIT is set, and returns it, or zero.
func KeepToCgroup() int64 {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return 0
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			continue
		}
		if limit := cgroupLimit(string(data)); limit > 0 {
			debug.SetMemoryLimit(limit)
			return limit
		}
	}
	return 0
}

// cgroupLimit returns the share of the kernel's number (cgroup-v2.rst, memory.max; version 1 writes one near 2^63).
func cgroupLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= 1<<60 {
		return 0
	}
	return int64(float64(n) * cgroupShare)
}
