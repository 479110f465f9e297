package nonblock

import "time"

// Lateness says how far Loops are behind with what they read. The zero value: they are not.
type Lateness struct {
	// Behind: a round takes seconds, or one did less than 5 s ago. What comes for the
	// connections waits with the kernel meanwhile, and more connections would make it worse.
	Behind bool
	// Since is when the first of those rounds began.
	Since time.Time
	// Longest is how long the longest of them took, so far.
	Longest time.Duration
}
