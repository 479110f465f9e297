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
	// Parent is the client's trace span; zero without one.
	Parent protocol.TraceParent
	// Said is the user's text; may be empty.
	Said string
}

// Followed receives the steps of one attempt at a turn.
type Followed struct {
	// Take receives the steps in order, from one goroutine. It must not block. It may be nil.
	Take func(Step)
	// Span is the parent span for whatever happens in the turn.
	Span protocol.TraceParent
}

// Step is an event in a turn. One field is set in addition to At.
type Step struct {
	At time.Time
	// Replied is an answer of the model, complete or not.
	Replied *Replied
	// Did are decisions about calls. Got is the result of a call.
	Did []calls.Action
	Got calls.Input
	// Over is the outcome of the attempt and Cost its cost. It is the last step.
	Over *TurnOver
	Cost cost.Amount
}

// Replied is the model's answer to a prompt.
type Replied struct {
	// Began is the time of the request and First that of the first text; zero without text.
	Began, First time.Time
	Reply        Reply
	// Err explains an incomplete Reply: a *ModelError, or the context's error.
	Err error
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

// report sends the follower a step that happened now.
func (t *turn) report(s Step) {
	if t.follower.Take != nil {
		s.At = time.Now()
		t.follower.Take(s)
	}
}
