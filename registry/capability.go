package registry

import "time"

// Messenger is the capability of a tool to speak to the client of the session that
// it was called in. It is there for each call in which a client is connected, may
// be used from any goroutine, and does nothing once the session is over.
type Messenger interface {
	// Timeout tells the client that its user is shut out until then, for d, and why.
	Timeout(until time.Time, d time.Duration, message string)
}
