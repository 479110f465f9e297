package audio

import "sync"

// Frame is a pooled buffer of PCM audio that waits in a queue.
type Frame struct{ PCM []byte }

// FrameCap is the capacity of a pooled frame in bytes: 100 ms at 48 kHz, the longest frame sent to a client. A longer
// frame from a client gets a larger buffer.
const FrameCap = 9600

var frames = sync.Pool{New: func() any { return &Frame{PCM: make([]byte, 0, FrameCap)} }}

// NewFrame returns a pooled frame with a copy of pcm.
func NewFrame(pcm []byte) *Frame {
	f := frames.Get().(*Frame)
	f.PCM = append(f.PCM[:0], pcm...)
	return f
}

// Extend appends pcm to a waiting frame unless the frame would exceed limit bytes, so that small pieces share a buffer.
// It reports whether it did. f may be nil.
func (f *Frame) Extend(pcm []byte, limit int) bool {
	if f == nil || len(f.PCM)+len(pcm) > limit {
		return false
	}
	f.PCM = append(f.PCM, pcm...)
	return true
}

// Size returns the memory of the frame in bytes. It stays the same while the frame holds at most FrameCap bytes.
func (f *Frame) Size() int { return cap(f.PCM) }

// Free returns the frame to the pool. The caller must not use it afterwards.
func (f *Frame) Free() {
	if cap(f.PCM) >= FrameCap {
		frames.Put(f)
	}
}
