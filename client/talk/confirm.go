package talk

import (
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

// Approval is who answers when a tool needs the user's approval.
type Approval int

// The values of Options.Approval.
const (
	// ApprovalNobody lets the question expire.
	ApprovalNobody Approval = iota
	// ApprovalYes approves at once, ApprovalNo declines at once.
	ApprovalYes
	ApprovalNo
	// ApprovalAsk puts the question to whoever types Options.Answers. The conversation
	// does not go on to its next turn before the question is over.
	ApprovalAsk
)

// pending is a confirmation.request that is not over.
type pending struct {
	token   string
	tool    string
	preview string
	// answered says that an answer is on its way; approved is which.
	answered, approved bool
	// retryAt is when an answer that was not recorded is given again; zero for never.
	retryAt time.Time
	// until is when it is not waited for any more.
	until time.Time
}

// maxQuestions bounds the questions that are open; a gateway has fewer.
const maxQuestions = 32

// answerRetry is how long after a failure of the gateway's store an answer is given
// again.
const answerRetry = time.Second

// hearConfirmation takes a question of a tool.
func (c *conversation) hearConfirmation(now time.Time, m *protocol.ConfirmationRequest) {
	approval := c.options.Approval
	if approval == ApprovalNobody || len(c.questions) >= maxQuestions {
		c.emit(now, Event{Event: EventUnanswerable, Text: m.Preview})
		return
	}
	until := now.Add(c.options.Patience)
	if m.ExpiresAt.After(now) {
		until = m.ExpiresAt.Add(c.options.Patience)
	}
	c.questions = append(c.questions, pending{token: m.Token, tool: m.Tool, preview: m.Preview, until: until})
	if approval != ApprovalAsk {
		c.answer(now, &c.questions[len(c.questions)-1], approval == ApprovalYes)
		return
	}
	if c.asked() == len(c.questions)-1 {
		c.ask(now)
	}
}

// asked is the index of the question that waits for an answer, the oldest; -1 for none.
func (c *conversation) asked() int {
	return slices.IndexFunc(c.questions, func(q pending) bool { return !q.answered })
}

// ask puts the oldest open question.
func (c *conversation) ask(now time.Time) {
	if i := c.asked(); i >= 0 {
		c.emit(now, Event{Event: EventAsking, Text: c.questions[i].preview})
	}
}

// typed takes a line that somebody has typed. Whatever is not a clear yes declines. A
// line that was typed before anything was asked answers nothing.
func (c *conversation) typed(now time.Time, line string) {
	i := c.asked()
	if i < 0 || c.phase == phaseLeaving || c.phase == phaseOver {
		return
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		c.answer(now, &c.questions[i], true)
	default:
		c.answer(now, &c.questions[i], false)
	}
	c.ask(now)
}

// nobodyTypes says that no more lines will come: what is open now, or later, expires.
func (c *conversation) nobodyTypes(now time.Time) {
	c.options.Approval = ApprovalNobody
	c.questions = slices.DeleteFunc(c.questions, func(q pending) bool {
		if !q.answered {
			c.emit(now, Event{Event: EventUnanswerable, Text: q.preview})
		}
		return !q.answered
	})
}

// answer sends the answer to a question.
func (c *conversation) answer(now time.Time, q *pending, approved bool) {
	q.answered, q.approved, q.retryAt = true, approved, time.Time{}
	name := EventDeclining
	if approved {
		name = EventApproving
	}
	c.emit(now, Event{Event: name, Text: q.preview})
	c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: approved})
}

// hearConfirmationEnded takes what became of a question.
func (c *conversation) hearConfirmationEnded(now time.Time, m *protocol.ConfirmationEnded) {
	asked := c.asked()
	i := slices.IndexFunc(c.questions, func(q pending) bool { return q.token == m.Token })
	if i < 0 {
		return
	}
	c.questions = slices.Delete(c.questions, i, i+1)
	c.lastHeard = now
	if i == asked {
		c.ask(now) // the next one
	}
}

// unrecorded takes it that the gateway could not record an answer: a person is asked
// again, everybody else tries again.
func (c *conversation) unrecorded(now time.Time) {
	for i := range c.questions {
		if q := &c.questions[i]; q.answered {
			q.retryAt = now.Add(answerRetry)
		}
	}
	if c.options.Approval != ApprovalAsk {
		return
	}
	for i := range c.questions {
		c.questions[i].answered, c.questions[i].retryAt = false, time.Time{}
	}
	c.ask(now)
}

// tickQuestions gives answers again, and gives up questions that a gateway has
// forgotten.
func (c *conversation) tickQuestions(now time.Time) {
	c.questions = slices.DeleteFunc(c.questions, func(q pending) bool { return now.After(q.until) })
	for i := range c.questions {
		if q := &c.questions[i]; !q.retryAt.IsZero() && !now.Before(q.retryAt) {
			c.answer(now, q, q.approved)
		}
	}
}
