//go:build !race

package race

// Enabled reports whether the race detector is on. It makes programs slower and larger, and sync.Pool
// forget on purpose.
const Enabled = false
