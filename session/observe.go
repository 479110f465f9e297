package session

import (
	"errors"
	"time"

	"voicegw/audio"
	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// Event is something that happens to sessions, or to those that want one, for whoever counts it.
// The set is closed. Nothing here happens for each frame of audio: what comes in frames is summed up
// at the end of a turn and of the session.
type Event interface{ event() }

// Observe returns what is told of the sessions with a provider's model. Two empty names stand for
// what happens before a model is known, or without one. It is called when a connection to a model
// has been opened and may be called concurrently, as may the function that it returns. That function
// is called with locks held, so it must not block.
type Observe func(provider, model string) func(Event)

// Entry is how a client came to its session.
type Entry string

// The entries.
const (
	EntryOpen     Entry = "open"     // it needed nothing
	EntryTicket   Entry = "ticket"   // it had a ticket
	EntryKey      Entry = "key"      // it has shown an API key, the operators' or a console's
	EntryToken    Entry = "jwt"      // it has shown a token of its user
	EntryTakeover Entry = "takeover" // another process has run the session before
)

// entryOf returns how a client without a ticket has got in.
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
	// Refused tells that a connection got no session. Reason is that of a [Cause], or one of the reasons of
	// [Refusals].
	Refused struct{ Reason string }
	// Started tells that a session has begun. Waited is how long its session.start took to come, Identified
	// how long it took to find out who the client is, Connected how long until the model was
	// reached, and Total how long all of it took, from the client's connection on. Of a session that
	// was taken over only Total is known.
	Started struct {
		Entry                                Entry
		Waited, Identified, Connected, Total time.Duration
	}
	// Ended tells that a session is over, or that another process goes on with it. Reason is that of a [Cause].
	Ended struct {
		Reason string
		Lasted time.Duration
	}
	// Charged tells that the session has cost so much more, in a turn or outside any.
	Charged struct{ Cost cost.Micros }
	// TurnOver tells that a turn has ended.
	TurnOver struct{ orchestrator.TurnEnded }
	// Failed tells that the client was to be told of an error that does not end the session.
	Failed struct{ Code orchestrator.Failure }
	// Interrupted tells that the user has cut an answer off. After is how long the user had been speaking, if speech
	// did it, otherwise zero. HeardMS is the best guess of how much the user has heard of the SentMS
	// that were sent.
	Interrupted struct {
		By              orchestrator.FlushReason
		After           time.Duration
		HeardMS, SentMS int64
	}
	// Nudged tells that a silent model was asked to answer.
	Nudged struct{}
	// Rejected tells that the client was to be told that something it sent is wrong. Code is one of the codes of
	// package protocol.
	Rejected struct{ Code string }
	// Slow tells that a client has fallen too far behind, and lost its connection.
	Slow struct{}
	// Sound is how much audio has passed since the last Sound of the session. Up has come from the
	// client, Down was sent to it. Backlog had waited too long for the model and Ahead was too far
	// ahead of real time, so they were dropped; Unheard came from the model and was not sent.
	Sound struct{ Up, Down, Backlog, Ahead, Unheard time.Duration }
	// Dialed tells that a connection to a model was tried. Kind is zero if it was opened.
	Dialed struct {
		How  orchestrator.LinkHow // LinkFresh for the first connection of a session
		Kind transport.Kind
		Took time.Duration
	}
	// Broken tells that a connection to a model has ended and was not closed by the session. Code is the
	// provider's own and may be anything.
	Broken struct {
		Kind transport.Kind
		Code string
	}
	// Reported tells that a model has reported an error after which its connection goes on. KindIgnore is for
	// one that the client is not shown.
	Reported struct{ Kind transport.Kind }
	// AnswerFailed tells that an answer of a model has failed or was cut off.
	AnswerFailed struct{ Kind transport.Kind }
	// Skipped tells how many messages of a model meant nothing, when its connection is over.
	Skipped struct{ transport.Stats }
	// Relinked tells that a connection to a model was replaced, or, if How is empty, could not be. Gap is how
	// long the session had none.
	Relinked struct {
		Why orchestrator.LinkReason
		How orchestrator.LinkHow
		Gap time.Duration
	}
	// Returned tells that a client wanted to come back to its session. Outcome is one of the outcomes below, or
	// the reason of a [Cause]. Took is how long it took, from its connection on; zero if it was refused
	// or carried.
	Returned struct {
		Outcome string
		Took    time.Duration
	}
)

// The outcomes of Returned for clients that have come back.
const (
	ReturnedHere  = "local"      // this node runs the session
	ReturnedThere = "relayed"    // another node runs it, and the client was carried there
	ReturnedMoved = "moved"      // another node had given it up, and it goes on here
	ReturnedTaken = "taken_over" // its node is gone, and it goes on here
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

// Reasons returns every Reason of an end or a refusal that has a name of its own in this package.
// Other refusals have a code of package package protocol.
func Reasons() []string {
	var all []string
	for _, c := range causes() {
		all = append(all, c.Reason)
	}
	return append(all, refusedDraining, refusedFull, refusedAddress, refusedBehind, refusedUnreachable)
}

// The reasons for which a connection is not even admitted.
const (
	refusedDraining    = "draining"
	refusedFull        = "full"
	refusedAddress     = "address"
	refusedBehind      = "behind"
	refusedUnreachable = "provider_unavailable"
)

// notAdmitted returns the reason for an error of Admit.
func notAdmitted(err error) string {
	switch {
	case errors.Is(err, ErrDraining):
		return refusedDraining
	case errors.Is(err, ErrFull):
		return refusedFull
	case errors.Is(err, ErrAddressLimit):
		return refusedAddress
	case errors.Is(err, ErrBehind):
		return refusedBehind
	}
	return refusedUnreachable
}

// tellNobody takes events that nobody counts.
func discardEvent(Event) {}

// noObserver is the Observe of a Manager without one.
func noObserver(string, string) func(Event) { return discardEvent }

// watchers returns what is told of each provider's default model.
func (o *Options) watchers() map[string]func(Event) {
	all := make(map[string]func(Event), len(o.Transports))
	for name, t := range o.Transports {
		all[name] = o.Observe(name, t.Model())
	}
	return all
}

// watcher is what observers know of a session. The session's mu guards it.
type watcher struct {
	follower Followed
	reported soundTotals
	spokeAt  time.Time // when the user began to speak last
	nudges   int32     // reported so far
}

// happened tells the observer of something in the session.
func (s *session) event(e Event) { s.model.link().observe(e) }

// observe tells the observer what a step has decided. The caller must hold mu.
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

// interruption returns what is told of a flush. The caller must hold mu.
func (w *watcher) interruption(a orchestrator.FlushItem, now time.Time) Interrupted {
	cut := Interrupted{By: a.Reason, HeardMS: a.HeardMS, SentMS: a.SentMS}
	if a.Reason == orchestrator.FlushUserSpeech && !w.spokeAt.IsZero() {
		cut.After = max(now.Sub(w.spokeAt), 0)
	}
	return cut
}

// sounded is how much audio was told of, in bytes or, of what came from the client, in ms.
type soundTotals struct{ upMS, down, backlog, ahead, unheard int64 }

// sumSound tells how much audio has passed since the last call. The caller must hold mu.
func (w *watcher) sumSound(s *session) {
	was := w.reported
	w.reported = soundTotals{upMS: s.mic.clock.ms(), down: s.down.SentBytes(), backlog: s.up.droppedBytes(), ahead: s.mic.aheadBytes.Load(), unheard: s.down.FlushedBytes()}
	now, out := w.reported, s.start.OutputRate
	s.event(Sound{
		Up:      time.Duration(now.upMS-was.upMS) * time.Millisecond,
		Down:    audio.Duration(out, int(now.down-was.down)),
		Backlog: audio.Duration(s.model.link().info().InputRate, int(now.backlog-was.backlog)),
		Ahead:   audio.Duration(s.start.InputRate, int(now.ahead-was.ahead)),
		Unheard: audio.Duration(out, int(now.unheard-was.unheard)),
	})
}
