package session

import (
	"maps"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/webhook"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

// Event is an event for metrics. The set is closed. Events of audio are summed per turn and session.
type Event interface{ event() }

// Observe returns a model's receiver, for empty names that of the rest. Locks are held: a receiver must not block.
type Observe func(provider, model string) func(Event)

// Entry is how a client was let in.
type Entry string

// The entries.
const (
	EntryOpen     Entry = "open"     // without credentials
	EntryTicket   Entry = "ticket"   // with a ticket
	EntryKey      Entry = "key"      // with an API key, the operators' or a console's
	EntryToken    Entry = "jwt"      // with a token of its user
	EntryTakeover Entry = "takeover" // another process ran the session before
)

func entryOf(p auth.Principal) Entry {
	switch p.Kind {
	case auth.KindKey, auth.KindOperator, auth.KindConsole:
		return EntryKey
	case auth.KindJWT:
		return EntryToken
	default:
		return EntryOpen
	}
}

type (
	// Refused means that a connection got no session. Reason is that of a [Cause], or one of the reasons of [Reasons].
	Refused struct{ Reason string }
	// Started means that a session has begun. The times are until session.start, until the user was known, until the model was
	// reached, and the sum; after a takeover only the sum.
	Started struct {
		Entry                                Entry
		Waited, Identified, Connected, Total time.Duration
	}
	// Ended means that a session is over, or another process continues it. Reason is that of a [Cause].
	Ended struct {
		Reason string
		Lasted time.Duration
	}
	// Charged means that the session has cost that much more.
	Charged struct{ Cost cost.Micros }
	// TurnOver means that a turn has ended.
	TurnOver struct{ orchestrator.TurnEnded }
	// Failed is an error for the client that does not end the session.
	Failed struct{ Code orchestrator.Failure }
	// Interrupted means that the user cut an answer off, maybe by speaking for After. HeardMS estimates the heard part of SentMS.
	Interrupted struct {
		By              orchestrator.FlushReason
		After           time.Duration
		HeardMS, SentMS int64
	}
	// Nudged means that a silent model was asked to answer.
	Nudged struct{}
	// Rejected means that the client sent something wrong. Code is one of package protocol.
	Rejected struct{ Code string }
	// Slow means that a client fell too far behind and lost its connection.
	Slow struct{}
	// Sound is the audio since the last Sound: Up from the client, Down to it, Backlog and Ahead dropped as too late
	// for the model or too far ahead, and Unheard from the model but not sent.
	Sound struct{ Up, Down, Backlog, Ahead, Unheard time.Duration }
	// Dialed means that a connection to a model was tried. Kind is zero on success.
	Dialed struct {
		How  orchestrator.LinkHow // LinkFresh for a session's first connection
		Kind transport.Kind
		Took time.Duration
	}
	// Broken means that a connection to a model ended unexpectedly. Code is the provider's own.
	Broken struct {
		Kind transport.Kind
		Code string
	}
	// Reported means that a model reported an error and continues. KindIgnore is for errors that the client does not see.
	Reported struct{ Kind transport.Kind }
	// AnswerFailed means that a model's answer failed or was cut off.
	AnswerFailed struct{ Kind transport.Kind }
	// Skipped counts the unknown and malformed messages of a finished connection.
	Skipped struct{ transport.Stats }
	// Relinked means that a connection was replaced, or could not be if How is empty. Gap is the time without one.
	Relinked struct {
		Why orchestrator.LinkReason
		How orchestrator.LinkHow
		Gap time.Duration
	}
	// Returned means that a client wanted to resume its session. Outcome is one of those below, or the reason of a
	// [Cause]. Took is the time from its connection on; zero if it was refused or carried.
	Returned struct {
		Outcome string
		Took    time.Duration
	}
)

// The outcomes of Returned for resumed sessions.
const (
	ReturnedHere  = "local"      // this node runs the session
	ReturnedThere = "relayed"    // another node runs it; the client was carried there
	ReturnedMoved = "moved"      // another node handed it over, and this one runs it now
	ReturnedTaken = "taken_over" // its node is gone, and this one runs it now
)

func (Refused) event()      {}
func (Started) event()      {}
func (Ended) event()        {}
func (Charged) event()      {}
func (TurnOver) event()     {}
func (Failed) event()       {}
func (Interrupted) event()  {}
func (Nudged) event()       {}
func (Rejected) event()     {}
func (Slow) event()         {}
func (Sound) event()        {}
func (Dialed) event()       {}
func (Broken) event()       {}
func (Reported) event()     {}
func (AnswerFailed) event() {}
func (Skipped) event()      {}
func (Relinked) event()     {}
func (Returned) event()     {}

// Reasons returns every Reason that this package names. Other refusals have a code of package protocol.
func Reasons() []string {
	var all []string
	for _, c := range causes {
		all = append(all, c.Reason)
	}
	return slices.AppendSeq(all, maps.Values(notAdmitted)) // an UnreachableError has the reason of causeUnavailable
}

// notAdmitted has the reasons for refusing a connection before its upgrade.
var notAdmitted = map[error]string{
	ErrDraining: "draining", ErrFull: "full", ErrAddressLimit: "address", ErrBehind: "behind",
}

func (o *Options) watchers() map[string]func(Event) {
	all := make(map[string]func(Event), len(o.Transports))
	for name, t := range o.Transports {
		all[name] = o.Observe(name, t.Model())
	}
	return all
}

// watcher is the state of a session's observers. The session's mu guards it.
type watcher struct {
	follower Followed
	reported soundTotals
	spokeAt  time.Time // when the user began to speak last
	nudges   int32     // already reported
}

func (s *session) event(e Event) { s.model.link().observe(e) }

// observe reports a step. The caller must hold mu.
func (w *watcher) observe(s *session, in orchestrator.Input, actions []orchestrator.Action, now time.Time) {
	if spoke, ok := in.(orchestrator.UserSpeechStarted); ok {
		w.spokeAt = spoke.At
	}
	nudged := int32(s.state.Nudges()) != w.nudges
	if nudged {
		w.nudges = int32(s.state.Nudges())
		s.event(Nudged{})
	}
	if w.follower.Take != nil {
		w.follower.Take(Step{At: now, In: in, Actions: actions, Nudged: nudged})
	}
	cut := false // an interruption may flush several items
	for _, a := range actions {
		switch a := a.(type) {
		case orchestrator.TurnEnded:
			s.event(TurnOver{a})
			w.sumSound(s)
		case orchestrator.Failed:
			s.event(Failed{a.Failure})
		case orchestrator.FlushItem:
			if !cut && a.Reason != orchestrator.FlushSessionEnd && a.Reason != orchestrator.FlushConnectionLost {
				s.event(w.interruption(a, now))
			}
			cut = true
		}
	}
}

// interruption returns the event of a flush. The caller must hold mu.
func (w *watcher) interruption(a orchestrator.FlushItem, now time.Time) Interrupted {
	cut := Interrupted{By: a.Reason, HeardMS: a.HeardMS, SentMS: a.SentMS}
	if a.Reason == orchestrator.FlushUserSpeech && !w.spokeAt.IsZero() {
		cut.After = max(now.Sub(w.spokeAt), 0)
	}
	return cut
}

// soundTotals is the reported audio, in bytes, or ms for the client's.
type soundTotals struct{ upMS, down, backlog, ahead, unheard int64 }

// sumSound reports the audio since the last call. The caller must hold mu.
func (w *watcher) sumSound(s *session) {
	was := w.reported
	w.reported = soundTotals{upMS: s.mic.clock.ms(), down: s.down.SentBytes(), backlog: s.up.droppedBytes(),
		ahead: s.mic.aheadBytes.Load(), unheard: s.down.FlushedBytes()}
	now, out := w.reported, s.start.OutputRate
	s.event(Sound{
		Up:      time.Duration(now.upMS-was.upMS) * time.Millisecond,
		Down:    audio.Duration(out, int(now.down-was.down)),
		Backlog: audio.Duration(s.model.link().info().InputRate, int(now.backlog-was.backlog)),
		Ahead:   audio.Duration(s.start.InputRate, int(now.ahead-was.ahead)),
		Unheard: audio.Duration(out, int(now.unheard-was.unheard)),
	})
}

// Follow is called when a session begins, or fails to through no fault of its client. It must not block.
type Follow func(Opening) Followed

// Opening is how a session began.
type Opening struct {
	SessionID, ConversationID, Agent string
	// Provider and Model are those of the first connection; empty without one.
	Provider, Model string
	Entry           Entry
	// Parent is the span that the session belongs to, Before its first span on the previous node. Both may be zero.
	Parent, Before protocol.TraceParent
	// The times of the connection, session.start, the identification, and the begin or refusal. Missing ones are zero.
	Came, Started, Known, Begun time.Time
	// Refused is the Reason of the [Cause]; empty if there is a session.
	Refused string
}

// Followed receives the steps of one session.
type Followed struct {
	// Take gets each step and some events, in order, with a lock held: it must not block. It may be nil.
	Take func(Step)
	// Start is the session's first span, for the next node.
	Start protocol.TraceParent
}

// Step is a step of a session, or an event between steps.
type Step struct {
	At time.Time
	// In and Actions are the step. In is nil for an Event.
	In      orchestrator.Input
	Actions []orchestrator.Action
	// Nudged: a silent model was asked to answer.
	Nudged bool
	// Event is nil, Returned or Ended.
	Event Event
}

// follow reports the begin of a session with that model; refused is the reason for a refused one.
func (g *startup) follow(to transport.Info, refused string) Followed {
	tell := g.options().Follow
	if tell == nil {
		return Followed{}
	}
	o := Opening{
		SessionID: g.SessionID, Provider: to.Provider, Model: to.Model, Entry: g.entry, Parent: g.Parent,
		Came: g.arrivedAt, Started: g.startedAt, Known: g.knownAt, Begun: time.Now(), Refused: refused,
	}
	if g.agent != nil {
		o.Agent = g.agent.Name
	}
	if g.start != nil {
		o.ConversationID = g.start.ConversationID
	}
	if g.restoring != nil {
		o.Before, _ = protocol.ParseTraceParent(g.restoring.saved.Trace)
	}
	return tell(o)
}

// event passes an event to the session's follower. The caller must hold mu.
func (w *watcher) event(e Event) {
	if w.follower.Take != nil {
		w.follower.Take(Step{At: time.Now(), Event: e})
	}
}

// Lifecycle gets the begin (webhook.SessionStarted) or the final end (webhook.SessionEnded) of a session and its time. A
// move to another process is neither.
type Lifecycle func(kind string, at time.Time, of webhook.Session)

// reportLifecycle reports a session; over is nil at its begin.
func (m *Manager) reportLifecycle(s *session, entry Entry, over *Cause) {
	tell := m.options().Lifecycle
	if tell == nil || over == nil && entry == EntryTakeover {
		return
	}
	to, kind, at := s.model.link().info(), webhook.SessionStarted, s.startedAt
	of := webhook.Session{
		SessionID: s.id, ConversationID: s.start.ConversationID, Principal: s.principal.Value().ID, Entry: string(entry),
		Agent: s.agent.Load().Name, Provider: to.Provider, Model: to.Model, StartedAt: webhook.Time(s.startedAt),
	}
	if !s.user.Anonymous() {
		of.User = s.user.String()
	}
	if over != nil {
		is := s.running()
		kind, at = webhook.SessionEnded, time.Now()
		of.End = &webhook.End{
			EndedAt: webhook.Time(at), DurationMS: at.Sub(s.startedAt).Milliseconds(), Reason: over.Reason, CloseCode: int(over.Close),
			Turns: is.Turn, CostUSDMicros: int64(is.Cost.Micros), Unpriced: is.Cost.Unpriced,
		}
	}
	tell(kind, at, of)
}
