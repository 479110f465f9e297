package voice

import (
	"time"

	"voicegw/audio"
)

// microphone cuts speech and silence into frames on a fixed schedule. Frame n holds the sound from n to n+1 frame
// lengths after the beginning and is due at its end. Nothing delays the schedule.
type microphone struct {
	// Fixed after newMicrophone.
	length  time.Duration // of a frame
	bytes   int
	began   time.Time
	silence []byte // a shared frame

	n    int64      // frames taken so far
	says *Recording // nil for silence
	from int64      // its first frame
	at   int        // bytes of it taken
}

func newMicrophone(rate int, length time.Duration, silence []byte, now time.Time) *microphone {
	return &microphone{length: length, bytes: audio.Bytes(rate, length), began: now, silence: silence}
}

func (m *microphone) due() time.Time { return m.began.Add(time.Duration(m.n+1) * m.length) }

// say begins a recording with the first frame not in the past. It returns when its first sample is spoken, by the
// schedule.
func (m *microphone) say(now time.Time, r *Recording) time.Time {
	passed := now.Sub(m.began)
	m.says, m.at = r, 0
	m.from = max(int64((passed+m.length-1)/m.length), m.n)
	return m.began.Add(time.Duration(m.from) * m.length)
}

func (m *microphone) idle() bool { return m.says == nil }

// take returns the next frame, which is read-only.
func (m *microphone) take() []byte {
	m.n++
	if m.says == nil || m.n <= m.from {
		return m.silence
	}
	rest := m.says.PCM[m.at:]
	if len(rest) >= m.bytes {
		m.at += m.bytes
		if len(rest) == m.bytes {
			m.says = nil
		}
		return rest[:m.bytes]
	}
	last := make([]byte, m.bytes)
	copy(last, rest)
	m.at += m.bytes
	m.says = nil
	return last
}

func (m *microphone) recorded(now time.Time) int64 {
	return max(int64(now.Sub(m.began)/m.length)-m.n, 0) * int64(m.bytes)
}

// skip drops frames older than a time and returns their number.
func (m *microphone) skip(before time.Time) int64 {
	skipped := int64(0)
	for m.due().Before(before) {
		m.take()
		skipped++
	}
	return skipped
}
