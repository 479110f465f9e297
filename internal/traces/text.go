package traces

import (
	"errors"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/transport"
)

// text follows one attempt at a text turn. The turn's goroutine calls it.
type text struct {
	t     *Traces
	who   about
	turn  *turn
	calls callBook
	first time.Time // of the first text
	nudge bool
}

// Text follows an attempt at a turn of the text agent; it is a chat.Options.Follow.
func (t *Traces) Text(o chat.Opening) chat.Followed {
	x := &text{t: t, calls: newCallBook(), who: about{conversation: o.ConversationID, agent: o.Agent, model: t.chat}}
	x.turn = &turn{
		at: newPlace(o.Parent), parent: o.Parent.Span, number: o.Turn, mode: modeText, begun: o.At, facts: facts{caller: o.Parent.Sampled},
	}
	if t.opts.Content {
		x.turn.heard = clipped(o.Said)
	}
	return chat.Followed{Take: x.take, Span: t.parent(x.turn.at, o.Parent.Sampled)}
}

func (x *text) take(s chat.Step) {
	switch {
	case s.Replied != nil:
		x.replied(s.At, s.Replied)
	case s.Over != nil:
		x.over(s)
	case s.Got != nil:
		if q, ok := s.Got.(calls.Recorded); ok {
			x.calls.asks(q)
		}
	}
	for _, a := range s.Did {
		if done, ok := a.(calls.Answer); ok {
			x.calls.ended(s.At, done, done.Record(s.At, calls.Effect{}))
		} else {
			x.calls.did(s.At, a, x.turn)
		}
	}
}

func (x *text) replied(at time.Time, r *chat.Replied) {
	u := r.Reply.Usage
	a := &answer{
		operation: opChat, output: outputText, begun: r.Began, first: r.First, end: at, streams: true, finish: finish(r.Reply),
		tokens: transport.Tokens{Input: u.Input, Output: u.Output, CachedText: u.Cached},
	}
	if r.Err != nil {
		a.finish, a.failed = "", "canceled"
		if failed, ok := errors.AsType[*chat.ModelError](r.Err); ok {
			a.failed = failed.Kind.String()
		}
	}
	if x.t.opts.Content {
		a.said = clipped(r.Reply.Text)
		if a.said != "" {
			x.turn.said = a.said
		}
	}
	if x.first.IsZero() {
		x.first = r.First
	}
	// After an empty answer the agent asks once more.
	if r.Err == nil && len(r.Reply.Calls) == 0 && strings.TrimSpace(r.Reply.Text) == "" && !r.Reply.Refused && !x.nudge {
		x.nudge, x.turn.facts.odd = true, true
		x.turn.attributes.truth(keyNudged, true)
	}
	x.turn.addAnswer(a)
}

func finish(r chat.Reply) string {
	switch {
	case r.Refused:
		return "content_filter"
	case r.Cut:
		return "length"
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (x *text) over(s chat.Step) {
	t := x.turn
	t.end, t.status, t.failed, t.cost = s.At, s.Over.Status, s.Over.Code, s.Cost
	t.facts.failed = s.Over.Code != ""
	t.tokens = transport.Tokens{Input: s.Over.Usage.Input, Output: s.Over.Usage.Output, CachedText: s.Over.Usage.Cached}
	if s.Over.Status == protocol.DoneFailed && s.Over.Code == "" {
		t.attributes.text(keyReason, "left")
	}
	t.facts.first = s.Over.Took
	if !x.first.IsZero() {
		t.facts.first = x.first.Sub(t.begun)
		t.attributes.ms(keyFirst, t.facts.first)
	}
	x.t.finish(t, nil, x.who, s.At)
}
