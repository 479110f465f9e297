package ws

import (
	"errors"
	"time"

	"voicegw/internal/nonblock"
)

// Budget bounds how much the other side may send, of any kind: every frame costs 1,
// 1 more for each full 2 KiB of its payload and, over TLS, 1 for each record after the first that
// begins no other frame. The zero value means no bound.
type Budget struct {
	// PerSecond is how much may be sent continuously.
	PerSecond int
	// Burst is how much may be sent at once after a pause. Between one and two bursts may
	// arrive before a flood is noticed: the clock is read only when a burst is used up.
	Burst int
}

// frameUnit is how many bytes of a frame's payload cost as much as the frame itself.
const frameUnit = 2 << 10

// ErrFlood is the error of a Read or TryRead after the other side has exceeded Options.Budget.
var ErrFlood = errors.New("the other side sends more than it may")

// purse is what is left of the other side's budget.
type purse struct {
	Budget
	left   int64
	filled time.Time
}

func newPurse(b Budget) purse { return purse{Budget: b, left: int64(b.Burst), filled: time.Now()} }

// pay pays the price of a frame with a payload of that length; false means that the budget is
// exceeded. It does not read the clock while something is left.
func (p *purse) pay(length uint64) bool {
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

// A turn ends after this many frames, of any kind, after this many bytes and, over TLS, after this
// many records, so that other connections get theirs. Within a turn TryRead returns at most this many
// messages. crypto/tls reads at most 16 records without data together with one that has some.
const (
	turnFrames  = 64
	turnBytes   = 4 * blockSize
	turnRecords = turnFrames
)

// errTurnOver ends a turn, as nonblock.ErrWouldBlock does, although there may be more to read.
var errTurnOver = errors.New("the turn is over")

// share is what a turn has used.
type share struct {
	frames, bytes, records int

	over bool // something may be left for the next turn
}

// giveTurn calls f, which reads messages, and requests the next turn if this one ended
// before everything was read.
func (c *Conn) giveTurn(f func()) {
	c.share = share{}
	f()
	if c.flooded.Load() && !c.closed.Load() {
		// Nothing more is read; but a broken connection is reported until it is closed.
		if _, err := c.under.Read(c.in.tiny[:1]); err != nil && !errors.Is(err, nonblock.ErrWouldBlock) {
			_ = c.CloseNow() // another goroutine may have closed it first
		}
	}
	if c.share.over {
		c.under.Nudge()
	}
}
