// Package race tells tests whether the race detector is on.
package race

// sample is the part of a test's cases that is tried under the race detector.
const sample = 10

// Sample returns how many of n cases a test tries which take the same goroutines through the same code: all of
// them, or a tenth under the race detector, which makes each up to ten times slower and finds nothing more.
// scripts/test-norace.sh runs the tests that call it without the race detector too.
func Sample(n int) int {
	if Enabled {
		return max(1, n/sample)
	}
	return n
}
