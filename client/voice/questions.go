package voice

import (
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

// question is a confirmation.request that is not over.
type question struct {
	token, preview string
	// asks says that a person answers; then answered says that an answer is on its way.
	asks, answered, approved bool
	// at is when the answer is given; zero once that was done, and while a person thinks. said is when it was.
	at, said time.Time
	// doubtful: a snapshot was announced, and it has not been asked again since.
	doubtful bool
	// until is when it is not waited for any more.
	until time.Time
}

const (
	// maxQuestions bounds the questions that are open; a gateway has fewer.
	maxQuestions = 32
	// answerRetry is how long after a failure of the gateway's store an answer is given
	// again.
	answerRetry = time.Second
)

// hearQuestion takes a question of a tool.
func (c *Conversation) hearQuestion(now time.Time, m *protocol.ConfirmationRequest) {
	c.sign, c.word = now, now
	if i := slices.IndexFunc(c.questions, func(q question) bool { return q.token == m.Token }); i >= 0 {
		c.questions[i].doubtful = false
		return // it is told again after a resume
	}
	approval := ApprovalNobody
	if x := c.About(m.Turn); x != nil {
		approval = x.Turn.Approval
	}
	if approval == ApprovalAsk && c.nobody {
		approval = ApprovalNobody
	}
	if approval == ApprovalNobody || len(c.questions) >= maxQuestions {
		c.tellQuestion(now, ApprovalNobody, m.Preview)
		return
	}
	q := question{token: m.Token, preview: m.Preview, approved: approval == ApprovalYes, asks: approval == ApprovalAsk, until: now.Add(c.o.Patience)}
	if m.ExpiresAt.After(now) {
		q.until = m.ExpiresAt.Add(c.o.Patience)
	}
	if !q.asks {
		q.answered, q.at = true, now.Add(c.o.ThinkTime)
	}
	c.questions = append(c.questions, q)
	if q.asks && c.asked() == len(c.questions)-1 {
		c.ask(now)
	}
}

func (c *Conversation) tellQuestion(now time.Time, a Approval, preview string) {
	c.observer.Happened(now, Event{Kind: Question, Approval: a, Text: preview})
}

// asked is the index of the question that a person is to answer, the oldest; -1 if there is no such question.
func (c *Conversation) asked() int {
	return slices.IndexFunc(c.questions, func(q question) bool { return !q.answered })
}

// ask puts the oldest open question.
func (c *Conversation) ask(now time.Time) {
	if i := c.asked(); i >= 0 {
		c.tellQuestion(now, ApprovalAsk, c.questions[i].preview)
	}
}

// Answer takes a line that a person has typed. Anything but a clear yes declines the oldest open
// question. A line that was typed before the question answers nothing.
func (c *Conversation) Answer(now time.Time, line string) {
	i := c.asked()
	if i < 0 || c.phase >= phaseLeaving {
		return
	}
	word := strings.ToLower(strings.TrimSpace(line))
	c.questions[i].approved = word == "y" || word == "yes"
	c.answer(now, &c.questions[i])
	c.ask(now)
}

// NobodyAnswers means that no person answers any more: open questions, now or later, expire.
func (c *Conversation) NobodyAnswers(now time.Time) {
	c.nobody = true
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool {
		if !q.answered {
			c.tellQuestion(now, ApprovalNobody, q.preview)
		}
		return !q.answered
	})
}

// answer sends the answer to a question.
func (c *Conversation) answer(now time.Time, q *question) {
	q.answered, q.at, q.said = true, time.Time{}, now
	approval := ApprovalNo
	if q.approved {
		approval = ApprovalYes
	}
	c.tellQuestion(now, approval, q.preview)
	c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
}

// answerAgain sends the answers again that were given before the connection broke, if nothing tells what
// became of their questions: everything has come that was missed. An answer counts once.
func (c *Conversation) answerAgain(now time.Time) {
	for i := range c.questions {
		if q := &c.questions[i]; q.answered && !q.said.IsZero() && q.said.Before(c.way.lost) {
			q.said = now
			c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
		}
	}
}

// hearAnswered takes what became of a question.
func (c *Conversation) hearAnswered(now time.Time, m *protocol.ConfirmationEnded) {
	c.sign, c.word = now, now
	asked := c.asked()
	i := slices.IndexFunc(c.questions, func(q question) bool { return q.token == m.Token })
	if i < 0 {
		return
	}
	c.questions = slices.Delete(c.questions, i, i+1)
	if i == asked {
		c.ask(now) // the next one
	}
}

// doubtQuestions says that a snapshot follows: a question that is still open is asked again in it.
func (c *Conversation) doubtQuestions() {
	for i := range c.questions {
		c.questions[i].doubtful = true
	}
}

// endDoubtful says that the snapshot has come: what it has not asked again was answered, or is over.
func (c *Conversation) endDoubtful(now time.Time) {
	asked, before := c.asked(), len(c.questions)
	over := asked >= 0 && c.questions[asked].doubtful
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return q.doubtful })
	if len(c.questions) < before {
		c.word = now
	}
	if over {
		c.ask(now) // the next one
	}
}

// unrecorded handles an answer that the gateway could not record: a person is asked again, otherwise
// the same answer is sent again.
func (c *Conversation) unrecorded(now time.Time) {
	asks := false
	for i := range c.questions {
		q := &c.questions[i]
		switch {
		case !q.answered || !q.at.IsZero():
		case q.asks:
			q.answered, q.said, asks = false, time.Time{}, true
		default:
			q.at, q.said = now.Add(answerRetry), time.Time{}
		}
	}
	if asks {
		c.ask(now)
	}
}

// tickQuestions gives the answers that are due, and gives up questions that a gateway has
// forgotten.
func (c *Conversation) tickQuestions(now time.Time) {
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return now.After(q.until) })
	for i := range c.questions {
		if q := &c.questions[i]; !q.at.IsZero() && !now.Before(q.at) {
			c.answer(now, q)
		}
	}
}
