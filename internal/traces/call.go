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

// call is a call of a tool, by voice or by text.
type call struct {
	id, tool        string
	at              place
	begun, ran, end time.Time // ran is when its tool was started; zero if none was
	answer          *calls.Answer
	notDelivered    string
	confirmation    string // what became of a question about it, in the audit's words
	confirmedBy     string
	question        place // of the call for which the user was asked; zero if this one needed no approval
}

// failure returns the type of the error of a call that has failed. One that waits for a person's approval
// has not.
func (k *call) failure() string {
	if k.answer == nil || k.answer.Envelope.OK || k.answer.Envelope.Error == nil || k.answer.Envelope.AsksUser() {
		return ""
	}
	return string(k.answer.Envelope.Error.Type)
}

// span returns the call's span. A call without an answer was under way when the turn's spans were made.
func (k *call) span(parent place, content bool) span {
	a := attributes{attribute.String(keyOperation, opTool), attribute.String(keyToolType, toolFunction)}
	a.text(keyToolName, k.tool)
	a.text(keyToolCall, k.id)
	a.text(keyConfirm, k.confirmation)
	a.text(keyConfirmer, k.confirmedBy)
	a.text(keyDelivered, k.notDelivered)
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

// mostQuestions bounds how many questions to the user are remembered.
const mostQuestions = 16

// callBook follows the calls of a conversation. It is not safe for concurrent use.
type callBook struct {
	open map[string]*call
	// asked are the calls about which the user was asked, by the references of the questions; order is the oldest
	// first.
	asked map[string]place
	order []string
}

func newCallBook() callBook {
	return callBook{open: map[string]*call{}, asked: map[string]place{}}
}

// did takes an action about a call. It returns a call that began with it; nil for others.
func (b *callBook) did(now time.Time, do calls.Action, parent place) *call {
	switch do := do.(type) {
	case calls.ToClient:
		if m, ok := do.Message.(*protocol.ToolStarted); ok && b.open[m.CallID] == nil {
			k := &call{id: m.CallID, tool: m.Tool, at: parent.below(), begun: now}
			b.open[m.CallID] = k
			return k
		}
	case calls.Run:
		if k := b.open[do.Call]; k != nil {
			k.ran = now
			k.question = b.asked[do.Reference]
		}
	}
	return nil
}

// ended takes the answer to a call, and what the audit has of it.
func (b *callBook) ended(now time.Time, a calls.Answer, r audit.Record) {
	k := b.open[a.Call]
	if k == nil {
		return
	}
	delete(b.open, a.Call)
	k.end, k.answer, k.notDelivered = now, &a, r.NotDelivered
	k.confirmation, k.confirmedBy = r.Confirmation, r.ConfirmedBy
}

// asks takes a question to the user that was recorded, and keeps where it was asked.
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

// forget ends what is open of a turn whose spans are made.
func (b *callBook) forget(all []*call) {
	for _, k := range all {
		delete(b.open, k.id)
	}
}

// failedTool reports whether a call has failed in a way that is worth a look: not because a rule of the
// conversation refused it.
func (k *call) failedTool() bool {
	switch registry.ErrorType(k.failure()) {
	case "", registry.ErrorModeRestricted, registry.ErrorBudgetExceeded, registry.ErrorSessionInactive, registry.ErrorSessionActive:
		return false
	}
	return true
}
