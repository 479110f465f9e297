// Package realtime serves clients of OpenAI's Realtime protocol (GA) in front of any provider.
//
// A State translates: events of the client become inputs of a session, and messages of the session become events for
// the client. It has no clock and no I/O. A Conn carries a State over a WebSocket as the client of a session.
package realtime

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/openaiwire"
	"voicegw/protocol"
)

// The provider is dialled at the first event that needs it, and otherwise this long after the newest event that only
// prepares the conversation, at most maxIdle after the start.
const (
	settleTime = 300 * time.Millisecond
	maxIdle    = 2 * time.Second
)

// changeTime is the least time between changes of the settings for the session, which limits them.
const changeTime = 250 * time.Millisecond

// A response fails if nothing happens for beginTime before its turn begins, or for deadTime after that.
const (
	beginTime = 20 * time.Second
	deadTime  = 2 * time.Minute
)

// audioAhead is how far a client's audio may be ahead of real time: clients send files at once.
const audioAhead = 60 * time.Second

// Options describe a conversation.
type Options struct {
	IDs openaiwire.IDs
	// Session has the first settings, and the rules for changing them.
	Session *openaiwire.Session
	// Start has the provider, the agent and the client's name. The State fills in the rest from the client's settings.
	Start protocol.Start
	// Model is the provider's model; empty for the default.
	Model string
	// Tools are those of the gateway, for clients that ask to see them.
	Tools []protocol.ClientTool
	// CheckTools returns the field of the first tool that the session would refuse, and why; nil accepts all.
	CheckTools func(tools []protocol.ClientTool) (field, why string)
}

// State is one conversation. It must not be used concurrently.
//
// Each method adds events for the client to Events and inputs for the session to Inputs; the caller takes them away.
type State struct {
	Events [][]byte
	Inputs []protocol.Input

	opts         Options
	ids          openaiwire.IDs
	sess         *openaiwire.Session
	conversation string
	begun        bool // the session has its Start
	ready        bool // the session has answered it
	closed       bool
	born         time.Time
	startBy      time.Time // zero once begun
	ending       *protocol.Error
	Dropped      int // inputs of the client that came too late or were refused by the session without an effect on the client

	mirror mirror
	given  settings // the settings that the session has
	// changed is when the client last changed them; changeAt is when the session gets later ones, zero for never.
	changed, changeAt time.Time

	tools  toolState
	answer answerState
	in     inputState
}

// settings are the client's settings that reach the model.
type settings struct {
	instructions string
	tools        []protocol.ClientTool
}

// New begins a conversation at now.
func New(opts Options, now time.Time) *State {
	s := &State{opts: opts, ids: opts.IDs, sess: opts.Session, conversation: opts.IDs.New("conv"), born: now,
		startBy: now.Add(maxIdle)}
	s.tools.open, s.tools.asked = map[string]string{}, map[string]string{}
	s.tell("session.created", s.sess)
	toolSide{s}.showTools(nil)
	s.in.configure(nil, s.sess)
	return s
}

func (s *State) tell(name string, values ...any) { s.emit(openaiwire.Event(name, values...)) }

func (s *State) emit(events ...openaiwire.ServerEvent) {
	for _, e := range events {
		// Every value can be encoded; JSON of the client was parsed before.
		if frame, err := e.Encode(s.ids); err == nil && !s.closed {
			s.Events = append(s.Events, frame)
		}
	}
}

// put gives the session a message, after its Start.
func (s *State) put(m protocol.ClientMessage) {
	if s.closed {
		return
	}
	s.start()
	s.Inputs = append(s.Inputs, protocol.Input{Message: m})
}

// start gives the session its Start, once.
func (s *State) start() {
	if s.begun || s.closed {
		return
	}
	s.begun, s.startBy = true, time.Time{}
	s.given = s.settingsOf(&openaiwire.ResponseParams{})
	start := s.opts.Start
	in, out := s.sess.Audio.Input, s.sess.Audio.Output
	start.InputRate, start.OutputRate = in.Format.Hz(), out.Format.Hz()
	start.Tools, start.Inspect = s.given.tools, s.tools.visible
	if out.Voice != s.sess.Rules.Voice {
		start.Voice = out.Voice
	}
	start.Extra = &protocol.StartExtra{Model: s.opts.Model, AudioAhead: audioAhead, AnyTools: true, Answers: true}
	start.Extra.History, s.in.texts = s.mirror.history()
	if s.given.instructions != s.sess.Rules.Instructions {
		start.Extra.Instructions = &s.given.instructions
	}
	if s.in.manual = s.keeps(); s.in.manual {
		start.TurnDetection = protocol.TurnDetectionClient
	} else if t := in.TurnDetection; t != nil {
		start.Extra.SilenceMS, start.Extra.PrefixMS = t.Silence(), t.PrefixMS
	}
	s.Inputs = append(s.Inputs, protocol.Input{Message: &start})
}

// prepares postpones the Start after an event that may be followed by others like it.
func (s *State) prepares(now time.Time) {
	if !s.begun {
		s.startBy = earlier(now.Add(settleTime), s.born.Add(maxIdle))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settingsOf returns the settings of a response. Of the tools it has only those that the client runs.
func (s *State) settingsOf(q *openaiwire.ResponseParams) settings {
	now := settings{instructions: s.sess.Instructions}
	if string(openaiwire.Given(q.ToolChoice, s.sess.ToolChoice)) != `"none"` {
		now.tools = declared(openaiwire.Given(q.Tools, s.sess.Tools))
	}
	return now
}

// reconfigure sends the session the settings of a response that differ from those it has.
func (s *State) reconfigure(q *openaiwire.ResponseParams) {
	to := s.settingsOf(q)
	same := func(a, b protocol.ClientTool) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema)
	}
	sameTools := slices.EqualFunc(to.tools, s.given.tools, same)
	if !s.begun || sameTools && to.instructions == s.given.instructions {
		return
	}
	change := &protocol.Reconfigure{Tools: to.tools}
	if to.instructions != s.given.instructions {
		change.Instructions = &to.instructions
	}
	s.given = to
	s.put(change)
}

// WakeAt returns when Tick must be called; zero for never.
func (s *State) WakeAt() time.Time {
	at := earlier(earlier(earlier(s.startBy, s.changeAt), s.answer.reportAt()), s.in.idleAt)
	if r := s.answer.response; r != nil {
		at = earlier(earlier(at, r.until), r.settle)
	}
	return at
}

// Tick does the work that is due at now.
func (s *State) Tick(now time.Time) {
	if s.closed {
		return
	}
	if !s.startBy.IsZero() && !now.Before(s.startBy) {
		s.start()
	}
	if !s.changeAt.IsZero() && !now.Before(s.changeAt) {
		s.changed, s.changeAt = now, time.Time{}
		s.reconfigure(&openaiwire.ResponseParams{})
	}
	s.reportPlayed(now)
	if !s.in.idleAt.IsZero() && !now.Before(s.in.idleAt) {
		s.idle(now)
	}
	if r := s.answer.response; r != nil && !r.settle.IsZero() {
		s.callsKnown(now, r)
	}
	if r := s.answer.response; r != nil && !r.until.IsZero() && !now.Before(r.until) {
		s.fail("server_error", "no_answer", "The model gave no answer.")
	}
}

// Close ends the conversation for a session that closes its client's connection with a code and a reason of voicegw.v1,
// and returns those for the client. No event follows.
func (s *State) Close(code websocket.StatusCode, reason string) (websocket.StatusCode, string) {
	if s.closed {
		return code, reason
	}
	how := closeOf(code, reason)
	message := how.message
	if s.ending != nil && how.message == "" {
		message = s.ending.Message
	}
	if how.kind == "" {
		s.finish(openaiwire.Cancelled, "reason", "client_cancelled")
	} else {
		s.fail(how.kind, how.error, message)
		failure := openaiwire.Error{Type: how.kind, Code: how.error, Message: message}
		if s.ending != nil && strings.HasPrefix(s.ending.Ref, "tools") { // a field of session.start
			failure.Param = "session." + s.ending.Ref
		}
		s.emit(failure.Failure(""))
	}
	s.closed = true
	return how.code, how.reason
}

// Gone ends the conversation after the client has left.
func (s *State) Gone() {
	if s.begun {
		s.put(&protocol.End{})
	}
	s.closed = true
}

type closing struct {
	code        websocket.StatusCode
	reason      string
	kind, error string // of the error before it; empty without one
	message     string // empty: that of the session
}

// expiries are the messages for a client whose session has expired.
var expiries = map[websocket.StatusCode]string{
	protocol.CloseServerLeaving: "This gateway is shutting down. Connect again to start a new session.",
	protocol.CloseMoving:        "This gateway is shutting down. Connect again to start a new session.",
	protocol.CloseLength:        "Your session hit its maximum duration.",
	protocol.CloseIdle:          "Your session ended because nothing was said for a long time.",
}

// closeOf translates a close code. OpenAI closes with 1001 when a session has reached its maximum duration, with 3000
// for wrong keys and with 4000 for errors of the client; the reason is the error's type and code
// (observed 2026-09-01).
func closeOf(code websocket.StatusCode, reason string) closing {
	c := closing{code: code, reason: reason, kind: "server_error", error: reason}
	message, expires := expiries[code]
	switch {
	case code == protocol.CloseDone:
		return closing{code: code, reason: reason}
	case expires:
		return closing{protocol.CloseServerLeaving, reason, "invalid_request_error", "session_expired", message}
	case code == protocol.CloseTicket:
		c.code, c.kind, c.error = 3000, "invalid_request_error", "invalid_api_key"
	case code >= 4000 && code < 4029:
		c.code = 1011
	case code >= 4029:
		c.code, c.kind = 4000, "invalid_request_error"
	}
	if c.code >= 3000 {
		c.reason = c.kind + "." + c.error
	}
	if c.kind == "server_error" {
		c.message = "The session ended: " + strings.ReplaceAll(reason, "_", " ") + "."
	}
	return c
}

// mirror are the items of the conversation, which the client may ask for: the newest ones only.
type mirror struct {
	openaiwire.List[*openaiwire.Item]
	bytes   int
	dropped bool // the conversation has older items
}

const (
	maxItems = 200
	maxBytes = 1 << 20
)

// insert puts an item after the one with the id previous, at the beginning for "root", and otherwise at the end.
func (m *mirror) insert(it *openaiwire.Item, previous *string) {
	at, _ := m.After(previous)
	if it.Size == 0 {
		b, _ := json.Marshal(it) // without a size it is the server's own, which can be encoded
		it.Size = len(b)
	}
	m.List = slices.Insert(m.List, at, it)
	m.grew(it.Size)
}

// grew counts bytes and drops the oldest items over the limits.
func (m *mirror) grew(bytes int) {
	m.bytes += bytes
	for len(m.List) > 1 && (len(m.List) > maxItems || m.bytes > maxBytes) {
		m.remove(0)
		m.dropped = true
	}
}

func (m *mirror) remove(i int) {
	m.bytes -= m.List[i].Size
	m.List = slices.Delete(m.List, i, i+1)
}

// say sets the words of a spoken item.
func (m *mirror) say(it *openaiwire.Item, words string) {
	if len(it.Content) == 1 && it.Content[0].Transcript != nil {
		it.Size -= len(*it.Content[0].Transcript)
		m.bytes -= len(*it.Content[0].Transcript)
	}
	for i := range it.Content {
		it.Content[i].Transcript = &words
	}
	it.Size += len(words)
	m.grew(len(words))
}

// history returns the conversation before the session, and the user's last texts, which the first response answers.
func (m *mirror) history() (said []protocol.AddItem, texts []*openaiwire.Item) {
	for _, it := range m.List {
		if it.Words() == "" {
			continue
		}
		if texts = append(texts, it); it.Role == "user" && len(texts) <= maxTexts {
			continue
		}
		for _, it := range texts {
			said = append(said, protocol.AddItem{Role: it.Role, Text: it.Words()})
		}
		texts = nil
	}
	return said, slices.DeleteFunc(texts, (*openaiwire.Item).IsAudio) // the session hears those
}
