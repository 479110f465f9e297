package gemini

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// outlet is where frames go: wire.Conn, or a recorder in tests.
type outlet interface {
	Send(event string, turn int, data []byte) []scenario.Fault
	At(p scenario.Point) []scenario.Fault
	Do(as []scenario.Fault) []scenario.Fault
	Close(code int, reason string)
	Closed() bool
}

const maxQueued = 16

// maxEarly bounds the realtime input that waits for the initial history; half of it, the older half, is dropped beyond.
const maxEarly = 1000

// session is one connection after its setup: the model's side of the protocol, without a clock and without a socket.
// Its owner passes in messages and the time, and due returns when it wants to be called again.
type session struct {
	// Fixed after newSession.
	opts  *wire.Options
	out   outlet
	speak func(name, text string) voice.Utterance
	grant func() string // makes a resumption handle for conv
	log   *slog.Logger

	// Owned by the connection's goroutine, like everything below.
	cfg      config
	resumed  bool // it continues from a handle
	conv     *conversation
	ear      *ear
	turn     *turn // nil while the model is idle
	turns    int
	ready    bool // results of background calls wait to be spoken about
	pieces   []scenario.Result
	queue    []scenario.Heard
	early    []clientMessage // realtime input that waits for the initial history
	agenda   wire.Agenda
	consumed int // client messages so far
	// busy is the state reported last: the client can't resume.
	busy bool

	deaf    bool // the user is transcribed and never answered
	handles handleHabits

	callCount int
}

func (s *session) after(now time.Time, d time.Duration, do func(now time.Time)) {
	s.agenda.Add(now.Add(d), do)
}

func (s *session) start(now time.Time, id string) {
	faults := s.out.At(scenario.Point{At: scenario.AtSetup})
	forgotten := false
	if s.resumed {
		if forgotten, faults = s.resumeFaults(faults); s.out.Closed() {
			return
		}
	}
	s.send(serverFrame{SetupComplete: &setupComplete{SessionID: id}})
	for _, a := range faults {
		if a.Kind == scenario.Quota {
			// As with a key whose quota is exhausted.
			s.after(now, quotaDelay, func(now time.Time) { s.commit(now, a) })
			continue
		}
		s.commit(now, a)
	}
	if s.cfg.habits.handleAtSetup && s.cfg.SessionResumption == nil {
		s.sendHandle(now)
	}
	s.setDeadlines(now)
	if forgotten {
		s.begin(now, s.proceed(), false)
	}
}

func (s *session) due() (time.Time, bool) {
	at, ok := s.agenda.Next()
	if s.turn != nil {
		if next, due := s.turn.due(); due && (!ok || next.Before(at)) {
			return next, true
		}
	}
	return at, ok
}

func (s *session) tick(now time.Time) {
	s.agenda.Run(now, s.out.Closed)
	s.advance(now)
}

func (s *session) handle(now time.Time, m clientMessage) *closeError {
	s.consumed++
	if s.cfg.seeding && m.realtime != nil {
		if s.early = append(s.early, m); len(s.early) > maxEarly {
			s.early = append(s.early[:0:0], s.early[maxEarly/2:]...)
		}
		return nil
	}
	switch {
	case m.Setup != nil:
		// litellm#31494: a second setup.
		return invalid(reasonInvalidArgument)
	case m.Content != nil:
		return s.handleContent(now, m.Content)
	case m.realtime != nil:
		return s.handleRealtime(now, m.realtime)
	case m.ToolResponse != nil:
		return s.handleResponses(now, m.ToolResponse)
	case m.ContextUpdate != nil:
		return s.cfg.update(m.ContextUpdate)
	}
	return nil
}

// handleUpdate changes instructions and tools for everything that the model begins from now on.
// Only 3.8 takes it (Google's page "Update system instructions and tools during a session with
// Gemini 3.8 Live", read 2026-11-24); older models close, as they do over any other input that
// they do not know (livekit/agents PR 5332 and #5496, for updates in mid-call).
func (c *config) update(m *contextUpdateMessage) *closeError {
	if c.habits.gen != gen38 {
		return invalid(reasonInvalidArgument)
	}
	if m.SystemInstruction != nil {
		c.instructions = m.SystemInstruction.text()
	}
	if m.Tools == nil {
		return nil
	}
	return c.setTools(m.Tools.Tools, "context_update.tools.tools")
}

func (s *session) handleContent(now time.Time, m *contentMessage) *closeError {
	active := s.turn != nil
	if active {
		if held, err := s.inputWhileBlocked(); err != nil {
			return err
		} else if !held {
			s.interrupt(now)
		}
	}
	for i := range m.Turns {
		s.conv.rememberContent(&m.Turns[i])
	}
	if !m.TurnComplete {
		return nil
	}
	if s.cfg.seeding {
		// The initial history may end with a turn of either side and is not answered.
		s.cfg.seeding = false
		s.conv.takeUnanswered()
		return s.handleEarly(now)
	}
	text := strings.Join(s.conv.unanswered, "\n")
	s.conv.unanswered = nil // the model remembers it with its answer
	switch {
	case text != "" || len(m.Turns) > 0:
		s.take(now, scenario.Heard{Text: text})
	case !active && !s.conv.answered:
		s.begin(now, s.proceed(), false)
	}
	return nil
}

// handleEarly handles the input that came before the initial history was complete: the provider
// waits for the history first (genai v1.77.0, types.go, HistoryConfig).
func (s *session) handleEarly(now time.Time) *closeError {
	early := s.early
	s.early = nil
	for _, m := range early {
		if err := s.handleRealtime(now, m.realtime); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversation) rememberContent(in *content) {
	text := in.text()
	c.usage.text += wire.TextTokens(text)
	c.usage.images += in.images()
	if in.Role == "model" {
		c.takeUnanswered()
		c.remember("model", text)
		return
	}
	if text != "" {
		c.unanswered = append(c.unanswered, text)
	}
}

// inputWhileBlocked is the effect of a text input on a model that waits for results: 2.5 closes (as its users report),
// 3.1 holds the input back, 3.8 gives up the calls (https://ai.google.dev/gemini-api/docs/live-tools, read 2026-11-20),
// for which the caller interrupts the turn.
func (s *session) inputWhileBlocked() (held bool, err *closeError) {
	if s.turn.phase != waiting {
		return false, nil
	}
	switch s.cfg.habits.gen {
	case gen25:
		return false, policy(reasonNotImplemented)
	case gen31:
		return true, nil
	}
	return false, nil
}

func (s *session) handleRealtime(now time.Time, m *realtimeMessage) *closeError {
	if (m.start || m.end) && !s.ear.manual {
		return invalid("Explicit activity control is not supported when automatic activity detection is enabled.")
	}
	if m.streamEnd && s.ear.manual {
		return invalid(reasonInvalidArgument)
	}
	if m.start && s.ear.start() {
		s.heardSpeech(now, speech{started: true})
	}
	if m.hasAudio {
		if err := s.hearAudio(now, m); err != nil {
			return err
		}
	}
	if m.end {
		if d, ok := s.ear.end(); ok {
			s.heardSpeech(now, speech{duration: d})
		}
	}
	if m.streamEnd {
		for _, e := range s.ear.streamEnd() {
			s.heardSpeech(now, e)
		}
	}
	if m.video {
		s.conv.usage.images++
		s.conv.remember("user", "[image]")
	}
	if m.text != "" {
		return s.handleText(now, m.text)
	}
	return nil
}

func (s *session) hearAudio(now time.Time, m *realtimeMessage) *closeError {
	rate, ok := audioRate(m.audioMIME)
	if !ok || s.ear.setRate(rate) != nil {
		return invalid(reasonInvalidArgument)
	}
	s.opts.Stats.AudioInMS.Add(int64(len(m.audio)) * 1000 / int64(2*rate))
	for _, e := range s.ear.hear(m.audio) {
		s.heardSpeech(now, e)
	}
	return nil
}

func (s *session) handleText(now time.Time, text string) *closeError {
	if s.turn != nil {
		held, err := s.inputWhileBlocked()
		if err != nil {
			return err
		}
		if !held && !s.cfg.noInterrupts {
			s.interrupt(now)
		}
	}
	s.conv.usage.text += wire.TextTokens(text)
	s.take(now, scenario.Heard{Text: text})
	return nil
}

func (s *session) heardSpeech(now time.Time, e speech) {
	if e.started {
		s.activity("ACTIVITY_START", e.offset)
		if !s.cfg.noInterrupts && s.turn != nil {
			s.interrupt(now)
		}
		return
	}
	s.opts.Stats.Utterances.Add(1)
	s.conv.usage.speech += e.duration
	h := scenario.Heard{Spoken: true, Duration: e.duration}
	if s.turn != nil {
		s.activity("ACTIVITY_END", e.offset)
		s.take(now, h)
		return
	}
	t := s.hear(h)
	s.transcribe(t.Heard)
	s.activity("ACTIVITY_END", e.offset)
	s.begin(now, t, true)
	s.next(now)
}

// activity announces speech if the model does so: 3.1 with an empty serverContent, 3.8 alone, as recorded. Activities
// declared by the client are not announced.
func (s *session) activity(kind string, offset time.Duration) {
	h := s.cfg.habits
	if s.cfg.ExplicitVADSignal {
		signal := map[string]string{"ACTIVITY_START": "VAD_SIGNAL_TYPE_SOS", "ACTIVITY_END": "VAD_SIGNAL_TYPE_EOS"}
		s.send(serverFrame{DetectionSignal: &detectionSignal{Type: signal[kind]}})
	}
	if !h.voiceActivity || s.ear.manual {
		return
	}
	f := serverFrame{VoiceActivity: &voiceActivity{Type: kind, AudioOffset: protoDuration(offset.Round(10 * time.Millisecond))}}
	if !h.emptyMessages {
		f.ServerContent = &serverContent{}
	}
	s.send(f)
}

func (s *session) transcribe(text string) {
	s.conv.usage.text += wire.TextTokens(text)
	if s.cfg.InputTranscription == nil || text == "" {
		return
	}
	if s.cfg.habits.wholeInput {
		s.content(serverContent{InputTranscription: &transcription{Text: text}})
		return
	}
	if s.cfg.habits.vertex {
		s.content(serverContent{InputTranscription: &transcription{}})
	}
	for _, w := range wire.Words(" " + strings.TrimLeft(text, " ")) {
		s.content(serverContent{InputTranscription: &transcription{Text: w}})
	}
	if s.cfg.habits.vertex {
		s.content(serverContent{InputTranscription: &transcription{Finished: true}})
	}
}

func (s *session) take(now time.Time, h scenario.Heard) {
	if s.turn != nil {
		if len(s.queue) < maxQueued {
			s.queue = append(s.queue, h)
		}
		return
	}
	t := s.hear(h)
	if h.Spoken {
		s.transcribe(t.Heard)
	}
	s.begin(now, t, h.Spoken)
	s.next(now)
}

func (s *session) next(now time.Time) {
	if s.turn != nil || s.out.Closed() {
		return
	}
	if len(s.queue) > 0 {
		h := s.queue[0]
		s.queue = s.queue[1:]
		s.take(now, h)
		return
	}
	if !s.ready || s.ear.speaking {
		return
	}
	s.ready = false
	results := append(s.pieces, s.conv.calls.take(true)...)
	s.pieces = nil
	if len(results) > 0 {
		s.begin(now, s.results(results), false)
	}
}

// hear asks the dialogue for the answer to an input, which the model remembers; a deaf model has no answer.
func (s *session) hear(h scenario.Heard) (t scenario.Turn) {
	s.conv.takeUnanswered()
	known := s.context()
	if h.Spoken && s.cfg.habits.gen == gen25 && !s.conv.answered {
		// 2.5 ignores a given history for the first input by voice, until it has answered once
		// (pipecat, gemini_live/llm.py, _create_initial_response; discuss.ai.google.dev/t/111617).
		known.Memory = nil
	}
	if s.deaf {
		t.Heard = s.conv.dialogue.Overhear(h, known)
	} else {
		t = s.conv.dialogue.Hear(h, known)
	}
	s.conv.remember("user", t.Heard)
	return t
}

func (s *session) results(rs []scenario.Result) (t scenario.Turn) {
	s.conv.takeUnanswered()
	if s.deaf {
		return t
	}
	return s.conv.dialogue.Results(rs, s.context())
}

func (s *session) proceed() scenario.Turn {
	if s.deaf {
		return scenario.Turn{}
	}
	return s.conv.dialogue.Continue(s.context())
}

func (s *session) context() scenario.Context {
	return scenario.Context{Instructions: s.cfg.instructions, Tools: s.cfg.tools, Memory: s.conv.history}
}

func (s *session) send(f serverFrame) { s.sendAudio(f, nil) }

// sendAudio postpones faults that need the protocol until the current frame has been handled: they may end the turn that
// is being sent.
func (s *session) sendAudio(f serverFrame, pcm []byte) {
	for _, a := range s.out.Send(f.event(), s.turns, encode(f, pcm)) {
		s.agenda.Add(time.Time{}, func(now time.Time) { s.commit(now, a) })
	}
}

func (s *session) content(c serverContent) { s.send(serverFrame{ServerContent: &c}) }

func (s *session) commitAll(now time.Time, as []scenario.Fault) {
	for _, a := range as {
		s.commit(now, a)
	}
}

func (s *session) commit(now time.Time, a scenario.Fault) {
	switch a.Kind {
	case scenario.GoAway:
		s.goAway(now, a.For)
	case scenario.Expire:
		s.close(&closeError{Code: websocket.StatusCode(cmp.Or(a.Code, 1008)), Reason: cmp.Or(a.Reason, reasonAborted)})
	case scenario.Quota:
		s.close(&closeError{Code: websocket.StatusCode(cmp.Or(a.Code, 1011)), Reason: cmp.Or(a.Reason, reasonQuota)})
	case scenario.CancelCall:
		s.after(now, a.For, func(now time.Time) {
			for _, async := range []bool{false, true} {
				for _, k := range s.conv.calls.open(async) {
					s.cancelCall(now, k)
				}
			}
		})
	case scenario.Delay, scenario.Drop, scenario.Close, scenario.UnknownEvent, scenario.Malformed, scenario.Silence, scenario.SlowRead,
		scenario.HTTPError:
		s.commitAll(now, s.out.Do([]scenario.Fault{a}))
	case scenario.Deaf:
		s.deaf = true
	case scenario.RefuseResume, scenario.Amnesia:
		s.conv.atResume = append(s.conv.atResume, a)
	case scenario.LateHandle:
		s.handles.late = a.For
	case scenario.NoHandle:
		s.handles.none = true
	case scenario.BusyHandle:
		s.handles.busy = true
	default:
		// DuplicateCall, LateCall and MissingID need a call, and none is due; the others are faults of OpenAI Live.
	}
}

func (s *session) close(e *closeError) { s.out.Close(int(e.Code), e.Reason) }
