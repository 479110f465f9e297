//go:build race

package openai

// raceOn: the race detector makes sync.Pool drop at random.
const raceOn = true
