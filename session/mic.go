package session

import (
	"sync"
	"sync/atomic"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

// microphone is the user's audio from the client to the uplink, guarded by inbound unless it says otherwise.
type microphone struct {
	clock     audioClock       // used concurrently
	resampler *audio.Resampler // nil if the rates are equal
	buf       []byte
	direct    transport.AudioIn
	again     int       // bytes that the client sends again; see startAt
	tooFastAt time.Time // when the client last got an error about audio that comes too fast
	dropped   int32     // frames dropped since then
	deaf      atomic.Int32

	silence *silence // nil if silence is not joined

	aheadBytes atomic.Int64 // dropped because it came too fast

	calm       atomic.Bool // State.Calm of the latest step
	flows      atomic.Bool // audio comes without a pause
	pauseWatch *time.Timer // checks whether audio still arrives; nil before the first; guarded by the session's mu
}

// Values of microphone.deaf.
const (
	hushed = 1 + iota // the model gets silence, because the user must hear the notice first
	muted             // the session ends and no longer listens
)

func (m *microphone) send(s *session, pcm []byte) {
	again := m.again > 0
	m.again = max(m.again-len(pcm), 0)
	switch m.deaf.Load() {
	case muted:
		return
	case hushed:
		clear(pcm) // the model's clock must advance
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
	switch silence := m.silence; {
	case manual:
		m.forward(s, pcm, again)
	case silence != nil && silence.now && !again && len(pcm) < silence.frame:
		m.listen(s, pcm)
		if silence.held == nil {
			silence.held = make([]byte, 0, silence.frame+len(pcm))
		}
		silence.held = append(silence.held, pcm...)
		if !silence.now || len(silence.held) >= silence.frame {
			m.release(s)
		}
	default:
		m.release(s)
		m.forward(s, pcm, again)
		m.listen(s, pcm)
	}
}

// silence joins the user's silence to longer frames. With the first sound that may belong to speech, all is sent at once.
type silence struct {
	frame int    // the length of such a frame, in bytes
	now   bool   // shorter frames are held
	held  []byte // less than a frame, at the model's rate
}

// quietBefore is how much silence precedes longer frames, in ms: every model has noticed the end of speech.
const quietBefore = 1500

// setModel adapts to a connection to a model. Nothing may be held.
func (m *microphone) setModel(info transport.Info, joins bool) {
	m.silence = nil
	if joins && info.Capabilities.AudioClock {
		m.silence = &silence{frame: audio.Bytes(info.InputRate, longestQueued)}
	}
}

func (m *microphone) listen(s *session, pcm []byte) {
	quiet := s.ear.hear(s, pcm)
	if m.silence != nil {
		m.silence.now = m.calm.Load() && quiet >= int64(max(quietBefore, 2*s.opts.SilenceMS))
	}
}

// release sends the held silence. The caller must hold inbound.
func (m *microphone) release(s *session) {
	if m.silence != nil && len(m.silence.held) > 0 {
		m.forward(s, m.silence.held, false)
		m.silence.held = m.silence.held[:0]
	}
}

func (m *microphone) forward(s *session, pcm []byte, again bool) {
	if !m.sendDirect(s, pcm, again) {
		s.up.pushAudio(pcm, again)
	}
}

// sendDirect saves a hop while nothing is queued and the network takes audio at once. It reports whether it did.
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

// tooFastEvery is the interval of errors about audio that comes too fast: a page that was held up sends many frames at
// once, which must not end a session. A client that continues still exceeds floodErrors.
const tooFastEvery = floodWindow / (floodErrors + 5)

// tooFast counts a dropped frame of n bytes. It returns how many since the last error, and whether to send another one.
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

// startAt sets a taken session's clock to settled, in ms: the end of the speech that needs no repetition. It returns
// how much later audio the client must send again, and from where. has may be nil.
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

// pauseAfter is how long a client may send no audio before that is a pause, for which a model would wait, as audio is
// its sense of time. A client that was held up for less sends it late (docs/clients.md).
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
	s.inbound.Lock()
	m.release(s)
	s.inbound.Unlock()
	s.command(transport.AudioPause{}, nil)
	s.ear.pause(s)
}

// listener is the gateway's speech detector: it fills in events that a model lacks and finds the user's last sound.
type listener struct {
	mu         sync.Mutex      // guards the following fields; taken before the session's mu
	detector   *audio.Detector // nil before the first audio
	from       int64           // where the detector's clock began, ms
	speechFrom int64           // where the detector heard the speech begin, ms
	reportedMS int64           // where the model last reported the beginning of speech, ms
	heardAt    time.Time       // when the orchestrator last learned that the user still speaks
	// modelHears: the model reports where the user speaks, by its capabilities or because it has done so.
	modelHears bool
}

// hear takes a piece of the user's audio, and returns how long the user has been quiet, in ms.
func (e *listener) hear(s *session, pcm []byte) (quietMS int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector == nil {
		e.detector = audio.NewDetector(audio.DetectorOptions{Rate: s.model.link().info().InputRate,
			SilenceMS: s.opts.SilenceMS, PrefixMS: s.opts.PrefixMS, SustainMS: int(orchestrator.SustainedSpeech.Milliseconds())})
	}
	for _, a := range e.detector.Process(pcm) {
		e.report(s, a)
	}
	if e.detector.Speaking() && time.Since(e.heardAt) >= orchestrator.HeardEvery {
		e.stillHears(s, false)
	}
	return e.detector.QuietMS()
}

func (e *listener) stillHears(s *session, sustained bool) {
	e.heardAt = time.Now()
	s.dispatch(orchestrator.UserHeard{AudioMS: s.mic.clock.ms(), Sustained: sustained})
}

// report passes an activity on. The caller must hold mu.
func (e *listener) report(s *session, a audio.Activity) {
	edge, report := e.from+a.EdgeMS, e.from+a.ReportMS
	at := s.mic.clock.when(edge, time.Now())
	switch {
	case a.Sustained:
		e.stillHears(s, true)
	case a.Started:
		e.speechFrom = edge
		if !e.modelHears {
			s.dispatch(orchestrator.UserSpeechStarted{AudioMS: report, At: at})
		}
	case e.modelHears:
		s.dispatch(orchestrator.UserQuiet{EndAt: at})
	default:
		s.dispatch(orchestrator.UserSpeechStopped{AudioMS: report, EndMS: edge, EndAt: at, SpeechMS: edge - e.speechFrom})
	}
}

// pause ends the speech that the detector hears, because the client has paused its audio.
func (e *listener) pause(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector == nil {
		return
	}
	speaking, end := e.detector.Speaking(), e.detector.ClockMS()
	last, _ := e.detector.LastMS()
	e.detector.Reset()
	if speaking {
		e.report(s, audio.Activity{EdgeMS: last, ReportMS: end})
	}
	e.from += end
}

func (e *listener) startAt(ms int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.from = ms
}

// relinked adapts to another connection to a model. resampled: its audio has another rate.
func (e *listener) relinked(modelHears, resampled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.modelHears = modelHears
	if resampled && e.detector != nil {
		e.from += e.detector.ClockMS()
		e.detector = nil
	}
}

// speechStart returns where the reported speech began on the client's audio clock; the link's began at offsetMS. From
// now on the model counts as one that reports speech, and its length counts from now.
func (e *listener) speechStart(offsetMS int64, ev transport.SpeechStarted) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := offsetMS + ev.AudioMS
	if e.detector != nil {
		if last, _ := e.detector.LastMS(); ev.Late && e.detector.Speaking() {
			ms = min(ms, e.from+last) // a short word may be over before its report comes
		}
		e.detector.Recount()
	}
	e.modelHears, e.reportedMS = true, ms
	return ms
}

// edgeSlack is by how many ms two detectors may differ about the end of the same sound.
const edgeSlack = 100

// speechEnd interprets a report of the end of speech. The last sound is where the gateway's detector heard it, because
// models report late and include silence; if it heard none, the model's position counts.
func (e *listener) speechEnd(offsetMS int64, ev transport.SpeechStopped, clock *audioClock) orchestrator.UserSpeechStopped {
	in := orchestrator.UserSpeechStopped{
		Item: ev.Item, AudioMS: offsetMS + ev.AudioMS, EndMS: offsetMS + ev.EndMS, Unsure: ev.EndMS == ev.AudioMS,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector != nil {
		ms, spoke := e.detector.LastMS()
		if ms += e.from; spoke && ms >= e.reportedMS {
			in.Unsure = false
			if ms <= in.AudioMS+edgeSlack { // a later sound is one that the model does not take for speech
				in.EndMS = min(ms, in.AudioMS)
			}
		}
	}
	in.EndAt = clock.when(in.EndMS, time.Now())
	return in
}

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

// clockMark: the audio up to ms had arrived at since after the clock's origin. A time.Time would double its size.
type clockMark struct {
	ms    int64
	since time.Duration
}

// markEvery is the distance of marks in ms, and how well a sample's time is known: 80 of them cover more than 6 s.
const markEvery = 100

// If a reader is late by more than lateReader, the socket is full, and the client continues to send for as long as the
// reader was late, at most longestLate, which is also the most that it can have buffered.
const (
	lateReader  = time.Second
	longestLate = 2 * time.Minute
)

// maxBurst is how much audio of a network outage may come at once, beyond AudioAhead. Over the session it is no more.
const maxBurst = 15 * time.Second

// minGap is the shortest outage whose audio may come as a burst.
const minGap = 500 * time.Millisecond

// add records n bytes that arrived after since (now if zero), unless they are more than most ahead of real time. It
// returns how far ahead they are, and for how long none had come. Audio that waited for a late reader counts as if read
// in time, not as a pause.
func (c *audioClock) add(n int, since, now time.Time, most time.Duration) (ahead, hole time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count > 0 {
		hole = now.Sub(c.origin) - c.back(1).since
	}
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
		return ahead, hole, false
	}
	if pause := since.Sub(c.start) - audio.Duration(c.rate, int(c.bytes)+n) - maxBurst; pause > 0 && !now.Before(c.until) {
		// A long pause, as of a muted microphone, does not allow a longer burst.
		c.start = c.start.Add(pause)
	}
	ahead = max(ahead, 0)
	c.bytes += int64(n)
	c.mark(clockMark{ms: audio.MS(c.rate, int(c.bytes)), since: now.Sub(c.origin)})
	return ahead, hole, true
}

// startAt sets a taken session's clock to ms. The next audio, of length again, may come at any speed.
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

// when returns now for a future sample, the earliest known time for one that is too old.
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
