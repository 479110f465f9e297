//go:build !linux

package nonblock

import "time"

// Loops and Loop are for Linux: elsewhere Notify always reports false.
type (
	Loops struct {
		Changed func(Lateness)
		Clock   func() time.Time
	}
	Loop struct{}
)

// Pick returns nil: there are no loops.
func (*Loops) Pick() *Loop { return nil }

// Lateness is never behind: there are no loops.
func (*Loops) Lateness() Lateness { return Lateness{} }

// CaughtUp is only for connections that are watched.
func (*Conn) CaughtUp() time.Time { return time.Time{} }

func (*Loop) nudge(*Conn) {}

// Notify reports false.
func (*Conn) Notify(*Loop, func()) bool { return false }

// TryReadInto is only for connections that are watched.
func (*Conn) TryReadInto(Room) (int, error) { return 0, errWatched }

// Pause is only for connections that are watched.
func (*Conn) Pause() {}

func (*Conn) await()      {}
func (*Conn) shut() error { return nil }

func (*watched) read([]byte) (int, error) { return 0, errWatched }
