package voice

import (
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

// question is an open confirmation.request.
type question struct {
	token, preview string
	// asks: a person answers. answered: an answer was sent.
	asks, answered, approved bool
	// at is when to answer; zero afterwards, and while a person decides. said is when the answer was given.
	at, said time.Time
	// doubtful: the coming snapshot has not repeated the question yet.
	doubtful bool
	// until is the deadline for the question.
	until time.Time
}

const (
	// maxQuestions limits open questions; a gateway has fewer.
	maxQuestions = 32
	// answerRetry is the delay before repeating an answer that the gateway's store failed to record.
	answerRetry = time.Second
)

func (c *Conversation) hearQuestion(now time.Time, m *protocol.ConfirmationRequest) {
	c.sign, c.word = now, now
	if i := slices.IndexFunc(c.questions, func(q question) bool { return q.token == m.Token }); i >= 0 {
		c.questions[i].doubtful = false
		return // it is repeated after a resume
	}
	approval := ApprovalNobody
	if x := c.About(m.Turn); x != nil {
		approval = x.Turn.Approval
	}
	if approval == ApprovalAsk && c.unattended {
		approval = ApprovalNobody
	}
	if approval == ApprovalNobody || len(c.questions) >= maxQuestions {
		c.tellQuestion(now, ApprovalNobody, m.Preview)
		return
	}
	q := question{token: m.Token, preview: m.Preview, approved: approval == ApprovalYes, asks: approval == ApprovalAsk,
		until: now.Add(c.o.Patience)}
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

// asked returns the index of the oldest question for a person, or -1.
func (c *Conversation) asked() int {
	return slices.IndexFunc(c.questions, func(q question) bool { return !q.answered })
}

// ask presents the oldest open question.
func (c *Conversation) ask(now time.Time) {
	if i := c.asked(); i >= 0 {
		c.tellQuestion(now, ApprovalAsk, c.questions[i].preview)
	}
}

// Answer takes a typed line. Anything but a clear yes declines the oldest open question. A line typed before the
// question is ignored.
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

// LetExpire lets all open and future questions expire.
func (c *Conversation) LetExpire(now time.Time) {
	c.unattended = true
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool {
		if !q.answered {
			c.tellQuestion(now, ApprovalNobody, q.preview)
		}
		return !q.answered
	})
}

func (c *Conversation) answer(now time.Time, q *question) {
	q.answered, q.at, q.said = true, time.Time{}, now
	approval := ApprovalNo
	if q.approved {
		approval = ApprovalYes
	}
	c.tellQuestion(now, approval, q.preview)
	c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
}

// answerAgain repeats answers given before the connection broke if the replay did not report their outcome. An answer
// counts once.
func (c *Conversation) answerAgain(now time.Time) {
	for i := range c.questions {
		if q := &c.questions[i]; q.answered && !q.said.IsZero() && q.said.Before(c.way.lost) {
			q.said = now
			c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
		}
	}
}

// hearAnswered handles the outcome of a question.
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

// doubtQuestions handles the announcement of a snapshot, which repeats open questions.
func (c *Conversation) doubtQuestions() {
	for i := range c.questions {
		c.questions[i].doubtful = true
	}
}

// endDoubtful handles the end of a snapshot. Questions that it did not repeat are over.
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

// unrecorded handles an answer that the gateway could not record: a person is asked again; an automatic answer is
// repeated.
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

// tickQuestions gives due answers and drops questions that the gateway has forgotten.
func (c *Conversation) tickQuestions(now time.Time) {
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return now.After(q.until) })
	for i := range c.questions {
		if q := &c.questions[i]; !q.at.IsZero() && !now.Before(q.at) {
			c.answer(now, q)
		}
	}
}
