package ws

import (
	"errors"
	"time"

	"voicegw/internal/nonblock"
)

// Budget bounds the frames of the other side. A frame costs 1, plus 1 for each full 2 KiB of its payload and, over TLS,
// 1 for each record after the first in which no other frame begins. The zero value means no bound.
type Budget struct {
	PerSecond int // the lasting rate
	// Burst is the maximum at once after a pause. Up to two bursts may arrive before a flood is noticed, because the
	// clock is read only when a burst is used up.
	Burst int
}

// frameUnit is the number of payload bytes that cost as much as a frame.
const frameUnit = 2 << 10

// ErrFlood is the error of a Read or TryRead after the other side has exceeded Options.Budget.
var ErrFlood = errors.New("the other side sends too many frames")

type allowance struct {
	Budget
	left   int64
	filled time.Time
}

func newAllowance(b Budget) allowance {
	return allowance{Budget: b, left: int64(b.Burst), filled: time.Now()}
}

// pay pays for a frame with a payload of that length. It returns false if the budget is exceeded.
func (p *allowance) pay(length uint64) bool {
	if p.PerSecond == 0 {
		return true
	}
	p.left -= 1 + int64(length/frameUnit)
	if p.left >= 0 {
		return true
	}
	now := time.Now()
	p.left = min(p.left+int64(now.Sub(p.filled).Seconds()*float64(p.PerSecond)), int64(p.Burst))
	p.filled = now
	return p.left >= 0
}

// The bounds of a turn, so that other connections get theirs.
const (
	turnFrames  = 64 // and messages
	turnBytes   = 4 * blockSize
	turnRecords = turnFrames // of TLS, not counting up to 16 empty ones before each
)

// errTurnOver ends a turn, as nonblock.ErrWouldBlock does, although there may be more to read.
var errTurnOver = errors.New("the turn is over")

type share struct {
	frames, bytes, records int

	over bool // data may be left for the next turn
}

// giveTurn calls f, which reads messages, and requests another turn if a bound ended this one.
func (c *Conn) giveTurn(f func()) {
	c.share = share{}
	f()
	if c.flooded.Load() && !c.closed.Load() {
		// The connection is paused, but it reports a breakage.
		if _, err := c.under.Read(c.in.tiny[:1]); err != nil && !errors.Is(err, nonblock.ErrWouldBlock) {
			_ = c.CloseNow() // another goroutine may have closed it first
		}
	}
	if c.share.over {
		c.under.Nudge()
	}
}
