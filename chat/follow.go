package chat

import (
	"time"

	"voicegw/protocol"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
)

// Opening describes an attempt at a turn that begins.
type Opening struct {
	ConversationID, Agent string
	Turn                  int
	At                    time.Time
	Parent                protocol.TraceParent // the client's trace span; zero without one
	Said                  string               // the user's text; may be empty
}

// Followed receives the steps of one attempt at a turn.
type Followed struct {
	Take func(Step)           // receives the steps in order, from one goroutine. It must not block. It may be nil.
	Span protocol.TraceParent // the parent span for whatever happens in the turn
}

// Step is an event in a turn. One field is set in addition to At.
type Step struct {
	At      time.Time
	Replied *Replied // an answer of the model, complete or not
	// Did are decisions about calls. Got is the result of a call.
	Did []calls.Action
	Got calls.Input
	// Over is the outcome of the attempt and Cost its cost. It is the last step.
	Over *TurnOver
	Cost cost.Amount
}

// Replied is the model's answer to a prompt.
type Replied struct {
	Began, First time.Time // Began is the time of the request and First that of the first text; zero without text
	Reply        Reply
	Err          error // explains an incomplete Reply: a *ModelError, or the context's error
}

func (t *turn) follow() {
	if t.a.opts.Follow == nil {
		return
	}
	t.follower = t.a.opts.Follow(Opening{
		ConversationID: t.conv.ID, Agent: t.persona.Name, Turn: t.number, At: time.Now(), Parent: t.req.Parent,
		Said: inWords(t.req.Message, t.req.Parts),
	})
}

func (t *turn) report(s Step) {
	if t.follower.Take != nil {
		s.At = time.Now()
		t.follower.Take(s)
	}
}
