package testutil

// sample is the fraction of a test's cases that run under the race detector.
const sample = 10

// SampleUnderRace returns how many of n similar cases a test should run: all, or a tenth under the race detector, which
// is up to ten times slower. scripts/test-norace.sh runs these tests again without the detector.
func SampleUnderRace(n int) int {
	if RaceEnabled {
		return max(1, n/sample)
	}
	return n
}
