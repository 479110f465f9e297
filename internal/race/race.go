// Package race tells tests whether the race detector is on.
package race

// sample is the part of a test's random cases that is tried under the race detector.
const sample = 10

// Sample returns how many of n random cases a test tries whose code runs on one goroutine: all of them, or
// a tenth under the race detector, which makes it ten times slower and finds nothing there. scripts/unit
// runs the tests that call it without the race detector too.
func Sample(n int) int {
	if Enabled {
		return max(1, n/sample)
	}
	return n
}
