package traces

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"voicegw/chat"
	"voicegw/internal/cost"
	"voicegw/internal/textutil"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// The bounds of one turn. turn.omitted counts the excess.
const (
	mostAnswers = 32
	mostCalls   = 64
	mostOthers  = 16
	mostEvents  = 32
	mostWords   = 8 << 10 // bytes of a text, with Options.Content
)

func clipped(s string) string { return textutil.Shorten(s, mostWords) }

type answer struct {
	at                place
	operation, output string
	id                string
	begun, first, end time.Time
	tokens            transport.Tokens
	finish            string
	failed            string
	streams           bool
	said              string // with Options.Content
}

func (a *answer) span(parent place, m Model) span {
	at := attributes{attribute.String(keyOperation, a.operation)}
	at.text(keyProvider, m.System, keyModel, m.Name, keyServer, m.Host)
	at.number(keyPort, int64(m.Port))
	at.text(keyOutput, a.output, keyResponse, a.id)
	at.truth(keyStream, a.streams)
	if a.finish != "" {
		at.texts(keyFinish, []string{a.finish})
	}
	if !a.first.IsZero() {
		at = append(at, attribute.Float64(keyFirstChunk, max(a.first.Sub(a.begun), 0).Seconds()))
	}
	tokens(&at, a.tokens)
	at.text(keyOutputMessages, messages("assistant", a.said))
	name := a.operation
	if m.Name != "" {
		name += " " + m.Name
	}
	return span{at: a.at, parent: parent.span, name: name, kind: client, begun: a.begun, end: a.end, attributes: at, failed: a.failed}
}

func tokens(a *attributes, t transport.Tokens) {
	a.number(keyInput, t.Input)
	a.number(keyOutputs, t.Output)
	a.number(keyInputText, t.InputText)
	a.number(keyInputAudio, t.InputAudio)
	a.number(keyOutputText, t.OutputText)
	a.number(keyOutputAudio, t.OutputAudio)
	a.number(keyCached, t.CachedText+t.CachedAudio)
	a.number(keyCachedText, t.CachedText)
	a.number(keyCachedAudio, t.CachedAudio)
	a.number(keyThought, t.OutputThought)
}

func messages(role, text string) string {
	if text == "" {
		return ""
	}
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	data, _ := json.Marshal([]message{{role, []part{{"text", clipped(text)}}}}) // strings cannot fail
	return string(data)
}

type turn struct {
	at         place
	parent     [8]byte
	links      []link
	number     int
	mode       string
	begun, end time.Time // end is zero during the turn
	status     string
	tokens     transport.Tokens
	cost       cost.Amount
	attributes attributes // of its end
	answers    []*answer
	calls      []*call
	others     []span
	events     []event
	omitted    int64
	failed     string
	facts      facts

	heard, said string // the last words of both sides, with Options.Content
}

func (t *turn) addAnswer(a *answer) {
	a.at = t.at.below()
	if keep(t, &t.answers, mostAnswers, a) && a.begun.Before(t.begun) {
		t.begun = a.begun // the model began the turn
	}
}

// keep appends a part of a turn, or counts it as omitted.
func keep[T any](t *turn, to *[]T, most int, part T) bool {
	if len(*to) >= most {
		t.omitted++
		return false
	}
	*to = append(*to, part)
	return true
}

func (t *turn) running() (n int) {
	for _, k := range t.calls {
		if k.end.IsZero() {
			n++
		}
	}
	return n
}

type about struct {
	session, conversation, agent string
	model                        Model
}

// spans makes the spans of a finished turn, its own first. Running calls end now.
func (t *turn) spans(who about, content bool, now time.Time) []span {
	a := attributes{attribute.String(keyOperation, opTurn), attribute.String(keyMode, t.mode), attribute.Int(keyTurn, t.number)}
	a.text(keyAgent, who.agent, keyProvider, who.model.System, keyModel, who.model.Name, keySession, who.session,
		keyConversation, who.conversation, keyStatus, t.status)
	a = append(a, t.attributes...)
	tokens(&a, t.tokens)
	a.number(keyCost, int64(t.cost.Micros))
	a.truth(keyUnpriced, t.cost.Unpriced > 0)
	a.number(keyOmitted, t.omitted)
	if content {
		a.text(keyInputMessages, messages("user", t.heard), keyOutputMessages, messages("assistant", t.said))
	}
	root := span{at: t.at, parent: t.parent, name: opTurn + " " + who.agent, begun: t.begun, end: t.end, attributes: a,
		events: t.events, links: t.links, failed: t.failed}
	out := make([]span, 0, 1+len(t.answers)+len(t.calls)+len(t.others))
	out = append(out, root)
	for _, one := range t.answers {
		if one.end.IsZero() {
			one.end = t.end
		}
		out = append(out, one.span(t.at, who.model))
	}
	for _, k := range t.calls {
		if k.end.IsZero() {
			k.end = now
		}
		out = append(out, k.span(t.at, content))
	}
	return append(out, t.others...)
}

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
		if failed, ok := errors.AsType[*textmodel.Error](r.Err); ok {
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

func finish(r textmodel.Reply) string {
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
