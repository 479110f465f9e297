//go:build race

package e2e

// raceEnabled: the race detector keeps memory of its own, and makes sync.Pool forget on purpose.
const raceEnabled = true
