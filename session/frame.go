package session

import "sync"

// frame is a pooled buffer of audio in a queue.
type frame struct{ pcm []byte }

// frameCap holds 100 ms at 48 kHz, the longest frame that the downlink makes; a longer frame from
// a client enlarges its buffer.
const frameCap = 9600

var frames = sync.Pool{New: func() any { return &frame{pcm: make([]byte, 0, frameCap)} }}

// newFrame returns a pooled frame with a copy of pcm.
func newFrame(pcm []byte) *frame {
	f := frames.Get().(*frame)
	f.pcm = append(f.pcm[:0], pcm...)
	return f
}

// extend appends pcm to a waiting frame, if it is then no longer than most. In this way, small
// pieces share one buffer.
func (f *frame) extend(pcm []byte, most int) bool {
	if f == nil || len(f.pcm)+len(pcm) > most {
		return false
	}
	f.pcm = append(f.pcm, pcm...)
	return true
}

// size returns how much memory a frame takes, in bytes. It does not change while the frame is
// extended to frameCap at most.
func (f *frame) size() int { return cap(f.pcm) }

// free returns the frame to the pool, unless it has no room for other audio.
func (f *frame) free() {
	if cap(f.pcm) >= frameCap {
		frames.Put(f)
	}
}
