package session

import (
	"sync"
	"time"

	"voicegw/audio"
)

// audioClock knows when each sample of a client's audio reached the gateway.
type audioClock struct {
	rate int // Hz; fixed

	mu     sync.Mutex // guards the following fields
	bytes  int64
	start  time.Time // when the first sample came
	marks  [clockMarks]clockMark
	oldest int // index into marks
	count  int
}

// clockMarks reach back 20 s at 20 ms a frame.
const clockMarks = 1024

// clockMark says that the audio up to ms had come by at.
type clockMark struct {
	ms int64
	at time.Time
}

// add notes that n bytes have come, and returns how far the client's audio is
// ahead of real time.
func (c *audioClock) add(n int, now time.Time) (ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = now
	}
	c.bytes += int64(n)
	mark := clockMark{ms: audio.MS(c.rate, int(c.bytes)), at: now}
	i := (c.oldest + c.count) % clockMarks
	c.marks[i] = mark
	if c.count < clockMarks {
		c.count++
	} else {
		c.oldest = (c.oldest + 1) % clockMarks
	}
	ahead = audio.Duration(c.rate, int(c.bytes)) - now.Sub(c.start)
	if ahead < 0 {
		// A pause (mute, a hole in the network) does not earn the right to a burst.
		c.start = c.start.Add(-ahead)
		ahead = 0
	}
	return ahead
}

// ms returns how much audio has come.
func (c *audioClock) ms() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return audio.MS(c.rate, int(c.bytes))
}

// when returns the time at which the sample at ms reached the gateway: now for
// one that is yet to come, the oldest known time for one that is too long ago.
func (c *audioClock) when(ms int64, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	lo, hi := 0, c.count
	for lo < hi {
		mid := (lo + hi) / 2
		if c.marks[(c.oldest+mid)%clockMarks].ms < ms {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == c.count {
		return now
	}
	return c.marks[(c.oldest+lo)%clockMarks].at
}

// take takes back what add has noted last: the frame was dropped.
func (c *audioClock) take(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= int64(n)
	c.count--
}
