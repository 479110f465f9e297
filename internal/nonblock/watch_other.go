//go:build !linux

package nonblock

import (
	"net"
	"syscall"
	"time"
)

// Loops watch nothing on this platform, only on Linux. Each connection has its own goroutine.
type Loops struct {
	Changed func(Lateness)
	Clock   func() time.Time
	Most    int
}

// Lateness returns the zero value: there are no loops.
func (*Loops) Lateness() Lateness { return Lateness{} }

// Load returns the zero value: there are no loops.
func (*Loops) Load() Load { return Load{} }

type watched struct{}

func (*watched) local() net.Addr  { return nil }
func (*watched) remote() net.Addr { return nil }

func watch(*Conn, func()) ear { return nil }

// hungUp reports false: this platform does not say.
func hungUp(syscall.RawConn) bool { return false }
