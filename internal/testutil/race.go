package testutil

// sample is the divisor for cases under the race detector.
const sample = 10

// SampleUnderRace returns how many of n similar cases to run: all, or a tenth under the race detector, which is up to
// ten times slower. scripts/test-norace.sh runs all without it.
func SampleUnderRace(n int) int {
	if RaceEnabled {
		return max(1, n/sample)
	}
	return n
}
