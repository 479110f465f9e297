package traces

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"voicegw/internal/audit"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/transport"
)

const (
	modeVoice = "voice"
	modeText  = "text"
)

const mostEnded = 8

// voice follows one session, which calls it with the session's lock held.
type voice struct {
	// Fixed after Voice.
	t      *Traces
	who    about
	start  place
	caller bool // the caller keeps the trace of the session's start

	begin []span // of its start, until its first turn is over; then nil
	fault bool   // it could not begin
	open  *turn
	ended []*turn // their calls still run
	calls callBook
	// answer is the model's running response, latest the last one, and mine the turn of latest.
	answer, latest *answer
	mine           *turn
	change         *change // a running replacement of the connection to the model, or move of the session; nil otherwise
}

type change struct {
	name, reason string
	begun        time.Time
}

// Voice follows a session; it is a session.Follow.
func (t *Traces) Voice(o session.Opening) session.Followed {
	v := &voice{t: t, calls: newCallBook(), start: newPlace(o.Parent), caller: o.Parent.Sampled}
	v.who = about{session: o.SessionID, conversation: o.ConversationID, agent: o.Agent, model: t.voices[o.Provider]}
	v.who.model.Name = o.Model
	v.begin, v.fault = v.opened(o), o.Refused != ""
	if v.fault {
		v.settleStart()
		return session.Followed{}
	}
	return session.Followed{Take: v.take, Start: t.parent(v.start, v.caller)}
}

func (v *voice) opened(o session.Opening) []span {
	a := attributes{attribute.String(keyMode, modeVoice)}
	a.text(keySession, v.who.session, keyConversation, v.who.conversation, keyAgent, v.who.agent,
		keyProvider, v.who.model.System, keyModel, v.who.model.Name, keyEntry, string(o.Entry))
	root := span{at: v.start, parent: o.Parent.Span, name: spanStart, kind: server, begun: o.Came, end: o.Begun, failed: o.Refused}
	if o.Entry == session.EntryTakeover {
		root.name = spanResume
		a.text(keyOutcome, session.ReturnedTaken)
	}
	if !o.Before.IsZero() {
		root.links = []link{{place{o.Before.Trace, o.Before.Span}, linkBefore}}
	}
	all := make([]span, 1, 3)
	part := func(name string, kind trace.SpanKind, from, to time.Time, failed string) {
		if from.IsZero() || to.IsZero() {
			return
		}
		all = append(all, span{at: v.start.below(), parent: v.start.span, name: name, kind: kind, begun: from, end: to, failed: failed})
	}
	if root.name == spanStart {
		// The client's delay before session.start does not count.
		if !o.Started.IsZero() {
			root.begun = o.Started
			a.ms(keyWait, o.Started.Sub(o.Came))
		}
		part(spanIdentify, internal, o.Started, o.Known, "")
		part(spanConnect, client, o.Known, o.Begun, o.Refused)
	}
	root.attributes = a
	all[0] = root
	return all
}

// settleStart decides about the start of a session without a turn; the first turn would have decided about it.
func (v *voice) settleStart() {
	if v.begin != nil {
		v.t.keep(v.begin, facts{failed: v.fault, caller: v.caller})
		v.begin = nil
	}
}

func (v *voice) take(s session.Step) {
	if s.Event != nil {
		v.event(s.At, s.Event)
		return
	}
	v.before(s.At, s.In)
	lost := func(a orchestrator.Action) bool {
		end, ok := a.(orchestrator.End)
		return ok && end.Reason == orchestrator.EndLost
	}
	if slices.ContainsFunc(s.Actions, lost) {
		v.changed(s.At, "", "no_connection") // before its turn ends
	}
	for _, a := range s.Actions {
		v.action(s.At, a)
	}
	if s.Nudged && v.open != nil {
		v.open.attributes.truth(keyNudged, true)
		v.open.facts.odd = true
	}
	v.claim()
	v.settle(s.At)
}

func (v *voice) event(at time.Time, e session.Event) {
	switch e := e.(type) {
	case session.Returned:
		a := texts(keyOutcome, e.Outcome)
		v.alone(span{name: spanResume, kind: server, begun: at.Add(-e.Took), end: at, attributes: a}, facts{})
	case session.Ended:
		v.over(at, e.Reason)
	}
}

func (v *voice) over(at time.Time, reason string) {
	if c := v.change; c != nil && c.name == spanMove {
		a := texts(keyOutcome, reason)
		v.change = nil
		v.alone(span{name: spanMove, begun: c.begun, end: at, attributes: a}, facts{})
	}
	if t := v.open; t != nil {
		v.open, t.end, t.status = nil, at, string(orchestrator.TurnInterrupted)
		t.attributes.text(keyReason, reason)
		v.ended = append(v.ended, t)
	}
	for _, t := range v.ended {
		v.ship(t, at)
	}
	v.ended = nil
	v.settleStart()
}

func (v *voice) before(at time.Time, in orchestrator.Input) {
	switch in := in.(type) {
	case orchestrator.FromModel:
		v.model(at, in.Event)
	case orchestrator.AudioBegan:
		if a := v.answer; a != nil && a.first.IsZero() {
			a.first = at
		}
	case orchestrator.Used:
		// A model reports the usage of an answer at its end or soon after.
		if a := v.latest; a != nil && (v.mine == nil || v.mine == v.open) {
			a.tokens = a.tokens.Add(in.Tokens)
		}
	case orchestrator.OfCall:
		if q, ok := in.In.(calls.Recorded); ok {
			v.calls.asks(q)
		}
	case orchestrator.LinkBack:
		v.changed(at, string(in.How), "")
	}
}

func (v *voice) model(at time.Time, e transport.Event) {
	switch e := e.(type) {
	case transport.ResponseStarted:
		v.answer = &answer{operation: opVoice, output: outputSpeech, id: e.ID, begun: at}
		v.latest, v.mine = v.answer, nil
	case transport.ResponseDone:
		if a := v.answer; a != nil {
			a.end, a.finish = at, string(e.Status)
			if e.Status == transport.ResponseFailed {
				a.failed = "response_failed"
				if e.Err != nil {
					a.failed = e.Err.Kind.String()
				}
			}
			v.claim()
			v.answer = nil
		}
	case transport.Problem:
		if t := v.open; t != nil {
			a := texts(keyError, e.Err.Kind.String())
			keep(t, &t.events, mostEvents, event{at, eventProblem, a})
			t.facts.odd = true
		}
	}
}

// claim adds the running response to the open turn, unless it has a turn.
func (v *voice) claim() {
	if v.answer != nil && v.mine == nil && v.open != nil {
		v.mine = v.open
		v.open.addAnswer(v.answer)
	}
}

func (v *voice) action(at time.Time, a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.TurnStarted:
		v.openTurn(at, a.Turn)
	case orchestrator.TurnEnded:
		v.endTurn(at, a)
	case orchestrator.AboutCall:
		if v.open != nil {
			v.calls.did(at, a.Do, v.open)
		}
	case orchestrator.ToolEnded:
		v.calls.ended(at, a.Answer, a.Record)
	case orchestrator.Failed:
		v.failed(at, a)
	case orchestrator.FlushItem:
		v.flushed(a)
	case orchestrator.Audit:
		if t := v.open; t != nil && a.Record.Event == audit.EventConfirmation {
			about := attributes{}
			about.text(keyToolName, a.Record.ToolID, keyConfirm, a.Record.Confirmation,
				keyConfirmer, a.Record.ConfirmedBy)
			keep(t, &t.events, mostEvents, event{at, eventConfirmation, about})
		}
	case orchestrator.Transcript:
		v.words(a)
	case orchestrator.SwitchLink:
		v.change = &change{name: spanRotate, reason: string(a.Reason), begun: at}
		if t := v.open; t != nil && a.Reason != orchestrator.LinkExpired {
			t.facts.odd = true
		}
	case orchestrator.Moving:
		v.change = &change{name: spanMove, begun: at}
	}
}

func (v *voice) openTurn(at time.Time, number int) {
	t := &turn{number: number, mode: modeVoice, begun: at, facts: facts{caller: v.caller}}
	if v.begin != nil && v.open == nil && len(v.ended) == 0 {
		// The first turn belongs to the trace of the session's start; each later turn has its own trace.
		t.at, t.parent = v.start.below(), v.start.span
	} else {
		t.at, t.links, t.facts.caller = newPlace(protocol.TraceParent{}), []link{{v.start, linkSession}}, false
	}
	v.open = t
}

func (v *voice) endTurn(at time.Time, a orchestrator.TurnEnded) {
	t := v.open
	if t == nil || t.number != a.Turn {
		return
	}
	v.open, t.end, t.status, t.tokens, t.cost = nil, at, string(a.Status), a.Usage, a.Cost
	if a.Status == orchestrator.TurnFailed && t.failed == "" {
		t.failed = string(a.Status)
	}
	t.facts.failed = t.facts.failed || a.Status == orchestrator.TurnFailed
	if l := a.Latency; l != nil {
		t.attributes.ms(keyFirst, l.Total)
		t.attributes.ms(keyDetection, l.Detection)
		t.attributes.ms(keyAnswer, l.Provider)
		t.attributes.ms(keyGateway, l.Gateway)
		t.facts.first = l.Total
	}
	if v.mine == t && v.answer != nil {
		v.answer = nil // its rest belongs to no turn
	}
	v.ended = append(v.ended, t)
}

func (v *voice) failed(at time.Time, a orchestrator.Failed) {
	t := v.open
	if t == nil {
		return
	}
	about := texts(keyError, string(a.Failure))
	about.truth(keyRetryable, a.Retryable)
	keep(t, &t.events, mostEvents, event{at, eventError, about})
	if a.Failure == orchestrator.FailureNoAnswer || a.Kind != 0 {
		t.failed, t.facts.failed = string(a.Failure), true
	}
}

func (v *voice) flushed(a orchestrator.FlushItem) {
	t := v.turn(a.Turn)
	if t == nil || a.Reason == orchestrator.FlushSessionEnd || a.Reason == orchestrator.FlushConnectionLost {
		return
	}
	if slices.ContainsFunc(t.attributes, func(a attribute.KeyValue) bool { return a.Key == keyCut }) {
		return // an interruption may flush several items
	}
	t.attributes.text(keyCut, string(a.Reason))
	t.attributes = append(t.attributes, attribute.Int64(keyHeard, a.HeardMS), attribute.Int64(keySent, a.SentMS))
}

func (v *voice) turn(number int) *turn {
	if v.open != nil && v.open.number == number {
		return v.open
	}
	for _, t := range v.ended {
		if t.number == number {
			return t
		}
	}
	return nil
}

func (v *voice) words(a orchestrator.Transcript) {
	t := v.turn(a.Turn)
	if t == nil || !v.t.opts.Content || !a.Final {
		return
	}
	said := &t.heard
	if a.Role == transport.RoleAssistant {
		said = &t.said
	}
	if len(*said) < mostWords {
		*said = clipped(joined(*said, a.Text))
	}
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

func (v *voice) changed(at time.Time, how, failed string) {
	c := v.change
	if c == nil {
		return
	}
	v.change = nil
	a := texts(keyReason, c.reason, keyOutcome, how)
	if c.name == spanMove && failed == "" {
		failed = "nobody_took_it"
	}
	s := span{name: c.name, kind: client, begun: c.begun, end: at, attributes: a, failed: failed}
	if t := v.open; t != nil && !c.begun.Before(t.begun) {
		s.at, s.parent = t.at.below(), t.at.span
		t.facts.failed = t.facts.failed || failed != ""
		keep(t, &t.others, mostOthers, s)
		return
	}
	broken := c.reason == string(orchestrator.LinkBroken) || c.reason == string(orchestrator.LinkUnanswered)
	v.alone(s, facts{failed: failed != "", odd: broken})
}

func (v *voice) alone(s span, f facts) {
	s.at, s.links = newPlace(protocol.TraceParent{}), []link{{v.start, linkSession}}
	a := texts(keySession, v.who.session, keyConversation, v.who.conversation)
	s.attributes = append(a, s.attributes...)
	v.t.keep([]span{s}, f)
}

func (v *voice) settle(now time.Time) {
	if len(v.ended) == 0 {
		return
	}
	v.ended = slices.DeleteFunc(v.ended, func(t *turn) bool {
		over := t.running() == 0
		if over {
			v.ship(t, now)
		}
		return over
	})
	for len(v.ended) > mostEnded {
		v.ship(v.ended[0], now)
		v.ended = v.ended[1:]
	}
}

// ship makes the spans of a turn, with those of the session's start if it is the first one.
func (v *voice) ship(t *turn, now time.Time) {
	v.calls.forget(t.calls)
	var before []span
	if t.at.trace == v.start.trace {
		before, v.begin = v.begin, nil
	}
	v.t.finish(t, before, v.who, now)
}
