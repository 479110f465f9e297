//go:build !race

package testutil

// RaceEnabled reports whether the race detector is on. Then programs are slower and larger, and sync.Pool drops items
// randomly.
const RaceEnabled = false
