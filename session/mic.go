package session

import (
	"sync/atomic"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
	"voicegw/transport"
)

// microphone is the user's audio on its way from the client to the uplink. Unless it says otherwise, the session's
// inbound guards it.
type microphone struct {
	clock     audioClock       // used concurrently
	resampler *audio.Resampler // nil if the rates are equal
	buf       []byte
	direct    transport.AudioIn
	again     int         // bytes that the client sends again; see startAt
	tooFastAt time.Time   // when the client last got an error about audio that comes too fast
	dropped   int32       // frames dropped since then
	muted     atomic.Bool // the session ends and no longer listens

	aheadBytes atomic.Int64 // dropped because it came too fast

	flows      atomic.Bool // audio comes without a pause
	pauseWatch *time.Timer // checks whether audio still arrives; nil before the first; guarded by the session's mu
}

func (m *microphone) send(s *session, pcm []byte) {
	again := m.again > 0
	m.again = max(m.again-len(pcm), 0)
	if m.muted.Load() {
		return
	}
	manual := manual(s.start)
	if !manual {
		m.audioFlows(s)
	}
	if m.resampler != nil {
		m.buf = m.resampler.Process(m.buf[:0], pcm)
		pcm = m.buf
	}
	if len(pcm) == 0 {
		return
	}
	if !m.sendDirect(s, pcm, again) {
		s.up.pushAudio(pcm, again)
	}
	if !manual {
		s.ear.hear(pcm, &m.clock, s, s.newDetector)
	}
}

// sendDirect sends audio on the goroutine that read it, which saves a hop, as long as nothing is queued and the
// network accepts it at once. It reports whether it sent the audio. again is that of uplink.pushAudio.
func (m *microphone) sendDirect(s *session, pcm []byte, again bool) bool {
	if l := s.model.link(); !l.conn.Ready() || !s.up.claim() {
		return false
	}
	defer s.up.release()
	l := s.model.link() // the claim keeps other links from taking over
	m.direct.PCM = pcm
	err := l.conn.Send(noDeadline, &m.direct) // the connection keeps the rest
	s.model.lookback.sent(pcm, again)
	if err != nil {
		l.lost("send", err)
	}
	return true
}

// tooFastEvery is the minimum interval between errors about audio that comes too fast. A page or network that was
// held up delivers many frames at once, which must not end a session. A client that does not stop still exceeds
// floodErrors within floodWindow.
const tooFastEvery = floodWindow / (floodErrors + 5)

// tooFast counts a frame of n bytes that was dropped. It returns how many were dropped since the last error and
// whether the client gets another one now.
func (m *microphone) tooFast(n int) (dropped int32, tell bool) {
	m.aheadBytes.Add(int64(n))
	m.dropped++
	if time.Since(m.tooFastAt) < tooFastEvery {
		return 0, false
	}
	dropped = m.dropped
	m.tooFastAt, m.dropped = time.Now(), 0
	return dropped, true
}

// startAt sets the clock of a session that another process has run to settled, in ms: the end of the speech that needs
// no repetition. It returns how much of its later audio the client must send again, and from where. has is what the
// client has kept; nil if it keeps nothing.
func (m *microphone) startAt(settled int64, has *protocol.ResumeInput) (from int64, again time.Duration) {
	from = settled
	if has != nil && from < has.ToMS {
		from = max(from, has.FromMS, has.ToMS-maxLookSpeech.Milliseconds())
		again = time.Duration(has.ToMS-from) * time.Millisecond
	}
	m.clock.startAt(from, again)
	m.again = audio.Bytes(m.clock.rate, again)
	return from, again
}

// rest reports whether a client that was lost while it sent audio again must send the rest of it.
func (m *microphone) rest(has *protocol.ResumeInput) bool {
	rest := 0
	if at := m.clock.ms(); m.again > 0 && has != nil {
		rest = min(m.again, audio.Bytes(m.clock.rate, time.Duration(has.ToMS-at)*time.Millisecond))
	}
	m.again = max(rest, 0)
	return m.again > 0
}

// pauseAfter is how long a client may send no audio before that counts as a pause. A model's sense of time is the
// audio itself: without audio it waits for the rest of a phrase, or for its end. A client that was held up for less
// sends the missing audio late (docs/clients.md); that still belongs to the phrase.
const pauseAfter = 2 * time.Second

func (m *microphone) audioFlows(s *session) {
	if m.flows.Load() {
		return
	}
	m.flows.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver():
	case m.pauseWatch == nil:
		m.pauseWatch = time.AfterFunc(pauseAfter, func() { m.watchPause(s) })
	default:
		m.pauseWatch.Reset(pauseAfter)
	}
}

func (m *microphone) watchPause(s *session) {
	if s.isOver() {
		return
	}
	if left := pauseAfter - time.Since(m.clock.newest()); left > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isOver() {
			m.pauseWatch.Reset(left)
		}
		return
	}
	m.flows.Store(false) // a frame that arrives now may be missed; the next one is not
	s.command(transport.AudioPause{}, nil)
	s.ear.pause(&m.clock, s)
}
