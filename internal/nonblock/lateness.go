package nonblock

import "time"

// Lateness says how far Loops are behind with reading. The zero value means that they are not.
type Lateness struct {
	// Behind says that a round takes seconds, or that one did less than 5 s ago. Data for the
	// connections waits in the kernel meanwhile, and more connections would make it worse.
	Behind bool
	// Since is when the first of those rounds began.
	Since time.Time
	// Longest is how long the longest of them has taken so far.
	Longest time.Duration
}
