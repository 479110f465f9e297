package talk

import (
	"time"

	"voicegw/audio"
)

// frameLength is how much audio goes into one frame.
const frameLength = 20 * time.Millisecond

// microphone cuts what is said, and the silence around it, into frames on a
// clock that does not drift: frame n is due n times 20 ms after the first.
type microphone struct {
	// Fixed after newMicrophone.
	frameBytes int
	began      time.Time

	frames int64 // taken so far
	buf    []byte
}

func newMicrophone(rate int, now time.Time) *microphone {
	n := audio.Bytes(rate, frameLength)
	return &microphone{frameBytes: n, began: now, buf: make([]byte, n)}
}

// due says whether the next frame has been recorded by now.
func (m *microphone) due(now time.Time) bool {
	return now.Sub(m.began) >= time.Duration(m.frames+1)*frameLength
}

// take fills the next frame from pcm and then with silence. It is valid until the
// next call.
func (m *microphone) take(pcm []byte) (frame []byte, used int) {
	m.frames++
	used = copy(m.buf, pcm)
	clear(m.buf[used:])
	return m.buf, used
}
