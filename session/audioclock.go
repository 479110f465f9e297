package session

import (
	"sync"
	"time"

	"voicegw/audio"
)

// audioClock records when each sample of a client's audio reached the gateway.
type audioClock struct {
	rate int // Hz; fixed

	mu     sync.Mutex // guards the following fields
	bytes  int64
	start  time.Time      // when the first sample came, moved later by each pause longer than maxBurst
	until  time.Time      // nothing counts as a pause before: audio for a late reader is in transit
	origin time.Time      // when the first sample was read; marks count from it
	marks  *[80]clockMark // a ring, allocated with the first sample
	again  time.Duration  // how much may come at once, first
	next   int            // index of the next mark
	count  int            // number of marks
}

// clockMark: the audio up to ms had arrived at since after the clock's origin. A session keeps 80 marks; a time.Time
// would double their size.
type clockMark struct {
	ms    int64
	since time.Duration
}

// markEvery is the distance between marks in ms: 80 of them cover more than 6 s. A sample's time is known to a tenth
// of a second.
const markEvery = 100

// If a reader is late by more than lateReader, the socket is full, and the client continues to send once its audio has
// been read. That takes as long as the reader was late, but at most longestLate, which is also the most that a client
// can have buffered.
const (
	lateReader  = time.Second
	longestLate = 2 * time.Minute
)

// maxBurst is how much audio, recorded during a network outage, a client may send at once, in addition to what may run
// ahead. Over the whole session it still sends no more than that beyond real time.
const maxBurst = 15 * time.Second

// minGap is the shortest outage whose audio may come as a burst.
const minGap = 500 * time.Millisecond

// add records n bytes that arrived after since (now if zero), unless the client's audio would then be more than most
// ahead of real time. It returns how far ahead it is or would be. Audio that waited for a late reader counts as if it
// had been read in time, so the delay is not taken for a pause.
func (c *audioClock) add(n int, since, now time.Time, most time.Duration) (ahead time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since.IsZero() || since.After(now) {
		since = now
	}
	since = later(since, now.Add(-longestLate))
	if late := now.Sub(since); late > lateReader {
		c.until = later(c.until, now.Add(late))
	}
	if c.marks == nil {
		c.start, c.origin, c.marks = since.Add(-audio.Duration(c.rate, int(c.bytes))-c.again), now, new([80]clockMark)
		if c.again > 0 {
			c.until = later(c.until, now.Add(c.again))
		}
	}
	ahead = audio.Duration(c.rate, int(c.bytes)+n) - now.Sub(c.start)
	if ahead > most {
		return ahead, false
	}
	if pause := since.Sub(c.start) - audio.Duration(c.rate, int(c.bytes)+n) - maxBurst; pause > 0 && !now.Before(c.until) {
		// A long pause, as of a muted microphone, does not allow a longer burst.
		c.start = c.start.Add(pause)
	}
	ahead = max(ahead, 0)
	c.bytes += int64(n)
	c.mark(clockMark{ms: audio.MS(c.rate, int(c.bytes)), since: now.Sub(c.origin)})
	return ahead, true
}

// startAt sets the clock of a session that another process has run, before any audio: it starts at ms, and the next
// audio, of length again, was recorded earlier and may come at any speed.
func (c *audioClock) startAt(ms int64, again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes, c.again = int64(audio.Bytes(c.rate, time.Duration(ms)*time.Millisecond)), again
}

// mark keeps the newest mark, and one for each markEvery ms before it. The caller must hold mu.
func (c *audioClock) mark(m clockMark) {
	if c.count >= 2 && m.ms-c.back(2).ms < markEvery {
		*c.back(1) = m
		return
	}
	c.marks[c.next] = m
	c.next = (c.next + 1) % len(c.marks)
	c.count = min(c.count+1, len(c.marks))
}

// back returns the i-th newest mark, counted from 1. The caller must hold mu.
func (c *audioClock) back(i int) *clockMark {
	return &c.marks[(c.next-i+len(c.marks))%len(c.marks)]
}

// ms returns how much audio has arrived, in ms.
func (c *audioClock) ms() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return audio.MS(c.rate, int(c.bytes))
}

// newest returns when the newest audio arrived; zero before any.
func (c *audioClock) newest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return time.Time{}
	}
	return c.origin.Add(c.back(1).since)
}

// when returns the time at which the sample at ms reached the gateway: now for a future sample, the earliest known
// time for one that is too old.
func (c *audioClock) when(ms int64, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now
	for i := 1; i <= c.count; i++ {
		m := c.back(i)
		if m.ms <= ms {
			// The samples between two marks came one after another.
			return earlier(at, c.origin.Add(m.since+time.Duration(ms-m.ms)*time.Millisecond))
		}
		at = c.origin.Add(m.since)
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
