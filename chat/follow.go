package chat

import (
	"time"

	"voicegw/protocol"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
)

// Opening is an attempt at a turn that begins.
type Opening struct {
	ConversationID, Agent string
	Turn                  int
	At                    time.Time
	// Parent is what the client has sent the message for; zero without one.
	Parent protocol.TraceParent
	// Said is the user's text; it may be empty.
	Said string
}

// Followed is what follows one attempt at a turn.
type Followed struct {
	// Take is told of what happens, in its order and by one goroutine. It must not block. Nil means that
	// nobody is told.
	Take func(Step)
	// Span is how the turn is named to what happens in it.
	Span protocol.TraceParent
}

// Step is something that has happened in a turn: one of its fields beside At is set.
type Step struct {
	At time.Time
	// Replied is an answer of the model, complete or not.
	Replied *Replied
	// Did is what was decided about calls, and Got the result of one.
	Did []calls.Action
	Got calls.Input
	// Over is how the attempt has ended, and Cost what it has cost. Nothing comes after it.
	Over *TurnOver
	Cost cost.Amount
}

// Replied is what the model answered to a prompt.
type Replied struct {
	// Began is when it was asked, First when the first piece of text came; zero if none did.
	Began, First time.Time
	Reply        Reply
	// Err is why there is no whole Reply: a *ModelError, or that of the turn's context.
	Err error
}

// follow tells whoever follows that the attempt begins.
func (t *turn) follow() {
	if t.a.opts.Follow == nil {
		return
	}
	t.follower = t.a.opts.Follow(Opening{
		ConversationID: t.conv.ID, Agent: t.persona.Name, Turn: t.number, At: time.Now(), Parent: t.req.Parent, Said: inWords(t.req.Message, t.req.Parts),
	})
}

// tellFollower tells whoever follows of something that happened just now.
func (t *turn) tellFollower(s Step) {
	if t.follower.Take != nil {
		s.At = time.Now()
		t.follower.Take(s)
	}
}
