//go:build race

package gemini

// raceEnabled: the race detector makes sync.Pool forget on purpose.
const raceEnabled = true
