//go:build !linux

package nonblock

import "time"

// Loops watch nothing here: they are for Linux. Each connection has a goroutine.
type Loops struct {
	Changed func(Lateness)
	Clock   func() time.Time
	Most    int
}

// Lateness is never behind: there are no loops.
func (*Loops) Lateness() Lateness { return Lateness{} }

func watch(*Conn, func()) ear { return nil }
