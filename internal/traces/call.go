package traces

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
)

type call struct {
	id, tool        string
	at              place
	begun, ran, end time.Time // ran is when its tool started; zero if it did not
	answer          *calls.Answer
	notDelivered    string
	confirmation    string // as in the audit
	confirmedBy     string
	question        place // the call that asked the user for approval; zero if this one needed none
}

// failure returns the error type of a failed call. A call that waits for a person's approval has not failed.
func (k *call) failure() string {
	if k.answer == nil || k.answer.Envelope.OK || k.answer.Envelope.Error == nil || k.answer.Envelope.AsksUser() {
		return ""
	}
	return string(k.answer.Envelope.Error.Type)
}

func (k *call) span(parent place, content bool) span {
	a := attributes{attribute.String(keyOperation, opTool), attribute.String(keyToolType, toolFunction)}
	a.text(keyToolName, k.tool, keyToolCall, k.id, keyConfirm, k.confirmation, keyConfirmer, k.confirmedBy,
		keyDelivered, k.notDelivered)
	if r := k.answer; r != nil {
		if !k.ran.IsZero() {
			a.ms(keyQueued, r.Queued)
			a.ms(keyRan, r.Took)
		}
		a.truth(keyOverspent, r.OverBudget)
		a.truth(keyCacheHit, r.Envelope.Meta.CacheHit)
		a.texts(keyClamped, slices.Sorted(maps.Keys(r.Envelope.Meta.Clamped)))
		if content {
			if r.Prepared != nil {
				a.text(keyToolArguments, clipped(string(r.Prepared.Args())))
			} else {
				a.text(keyToolArguments, clipped(string(r.Written)))
			}
			a.text(keyToolResult, clipped(string(r.Envelope.Kept().Encode())))
		}
	}
	s := span{at: k.at, parent: parent.span, name: opTool + " " + k.tool, begun: k.begun, end: k.end, attributes: a, failed: k.failure()}
	if !k.question.isZero() && k.question.trace != k.at.trace {
		s.links = []link{{k.question, linkQuestion}}
	}
	return s
}

const mostQuestions = 16

type callBook struct {
	open  map[string]*call
	asked map[string]place // the calls that asked the user, by the reference of the question
	order []string         // the references, oldest first
}

func newCallBook() callBook {
	return callBook{open: map[string]*call{}, asked: map[string]place{}}
}

// did handles an action about a call, which may begin one of the turn.
func (b *callBook) did(now time.Time, do calls.Action, of *turn) {
	switch do := do.(type) {
	case calls.ToClient:
		if m, ok := do.Message.(*protocol.ToolStarted); ok && b.open[m.CallID] == nil {
			k := &call{id: m.CallID, tool: m.Tool, at: of.at.below(), begun: now}
			if keep(of, &of.calls, mostCalls, k) {
				b.open[m.CallID] = k
			}
		}
	case calls.Run:
		if k := b.open[do.Call]; k != nil {
			k.ran, k.question = now, b.asked[do.Reference]
		}
	}
}

func (b *callBook) ended(now time.Time, a calls.Answer, r audit.Record) {
	k := b.open[a.Call]
	if k == nil {
		return
	}
	delete(b.open, a.Call)
	k.end, k.answer, k.notDelivered = now, &a, r.NotDelivered
	k.confirmation, k.confirmedBy = r.Confirmation, r.ConfirmedBy
}

func (b *callBook) asks(q calls.Recorded) {
	k := b.open[q.Call]
	if k == nil || q.Reference == "" {
		return
	}
	if _, known := b.asked[q.Reference]; !known {
		b.order = append(b.order, q.Reference)
	}
	b.asked[q.Reference] = k.at
	if len(b.order) > mostQuestions {
		delete(b.asked, b.order[0])
		b.order = b.order[1:]
	}
}

func (b *callBook) forget(all []*call) {
	for _, k := range all {
		delete(b.open, k.id)
	}
}

// failedTool reports whether the tool failed. A refusal by a rule of the conversation is not a failure of the tool.
func (k *call) failedTool() bool {
	switch registry.ErrorType(k.failure()) {
	case "", registry.ErrorModeRestricted, registry.ErrorBudgetExceeded, registry.ErrorSessionInactive, registry.ErrorSessionActive:
		return false
	}
	return true
}
