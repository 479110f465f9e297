//go:build race

package testutil

// RaceEnabled reports whether the race detector is on. It makes programs slower and larger, and sync.Pool
// forget on purpose.
const RaceEnabled = true
