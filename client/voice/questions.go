package voice

import (
	"slices"
	"strings"
	"time"

	"voicegw/protocol"
)

type question struct {
	token, preview string
	// asks: a person answers. answered: an answer was sent.
	asks, answered, approved bool
	// at is when to answer; zero afterwards, and while a person decides. sent is when the answer was sent.
	at, sent time.Time
	// unconfirmed: the coming snapshot has not repeated the question yet.
	unconfirmed bool
	until       time.Time
}

const (
	// maxQuestions limits open questions; a gateway has fewer.
	maxQuestions = 32
	// answerRetry is the delay before repeating an answer that the gateway's store failed to record.
	answerRetry = time.Second
)

// questions are the open questions of tools, oldest first.
type questions struct {
	// Fixed after New.
	o        *Options
	observer Observer
	send     func(protocol.ClientMessage)

	open       []question
	unattended bool // no person answers questions any longer
}

func (s *questions) add(now time.Time, m *protocol.ConfirmationRequest, approval Approval) {
	if i := s.index(m.Token); i >= 0 {
		s.open[i].unconfirmed = false
		return // it is repeated after a resume
	}
	if approval == ApprovalAsk && s.unattended || len(s.open) >= maxQuestions {
		approval = ApprovalNobody
	}
	if approval == ApprovalNobody {
		s.report(now, ApprovalNobody, m.Preview)
		return
	}
	q := question{token: m.Token, preview: m.Preview, approved: approval == ApprovalYes, asks: approval == ApprovalAsk,
		until: now.Add(s.o.Patience)}
	if m.ExpiresAt.After(now) {
		q.until = m.ExpiresAt.Add(s.o.Patience)
	}
	if !q.asks {
		q.answered, q.at = true, now.Add(s.o.ThinkTime)
	}
	s.open = append(s.open, q)
	if q.asks && s.asked() == len(s.open)-1 {
		s.ask(now)
	}
}

func (s *questions) index(token string) int {
	return slices.IndexFunc(s.open, func(q question) bool { return q.token == token })
}

func (s *questions) report(now time.Time, a Approval, preview string) {
	s.observer.Happened(now, Event{Kind: Question, Approval: a, Text: preview})
}

// asked returns the index of the oldest question for a person, or -1.
func (s *questions) asked() int {
	return slices.IndexFunc(s.open, func(q question) bool { return !q.answered })
}

func (s *questions) ask(now time.Time) {
	if i := s.asked(); i >= 0 {
		s.report(now, ApprovalAsk, s.open[i].preview)
	}
}

// take handles a typed line. Anything but a clear yes declines the oldest open question.
func (s *questions) take(now time.Time, line string) {
	i := s.asked()
	if i < 0 {
		return
	}
	word := strings.ToLower(strings.TrimSpace(line))
	s.open[i].approved = word == "y" || word == "yes"
	s.answer(now, &s.open[i])
	s.ask(now)
}

func (s *questions) letExpire(now time.Time) {
	s.unattended = true
	s.open = slices.DeleteFunc(s.open, func(q question) bool {
		if !q.answered {
			s.report(now, ApprovalNobody, q.preview)
		}
		return !q.answered
	})
}

func (s *questions) answer(now time.Time, q *question) {
	approval := ApprovalNo
	if q.approved {
		approval = ApprovalYes
	}
	s.report(now, approval, q.preview)
	s.resolve(now, q)
}

func (s *questions) resolve(now time.Time, q *question) {
	q.answered, q.at, q.sent = true, time.Time{}, now
	s.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
}

// repeatAnswers repeats answers that were lost with the connection. An answer counts once.
func (s *questions) repeatAnswers(now, lost time.Time) {
	for i := range s.open {
		if q := &s.open[i]; q.answered && !q.sent.IsZero() && q.sent.Before(lost) {
			s.resolve(now, q)
		}
	}
}

func (s *questions) end(now time.Time, token string) {
	s.remove(now, func(q question) bool { return q.token == token })
}

// remove removes questions, and asks the next one if a person had been asked.
func (s *questions) remove(now time.Time, over func(q question) bool) (removed bool) {
	asked, before := s.asked(), len(s.open)
	next := asked >= 0 && over(s.open[asked])
	s.open = slices.DeleteFunc(s.open, over)
	if next {
		s.ask(now)
	}
	return len(s.open) < before
}

func (s *questions) expectSnapshot() {
	for i := range s.open {
		s.open[i].unconfirmed = true
	}
}

// endSnapshot handles the end of a snapshot: questions that it did not repeat are over. It reports whether there were
// any.
func (s *questions) endSnapshot(now time.Time) bool {
	return s.remove(now, func(q question) bool { return q.unconfirmed })
}

// unrecorded handles an answer that the gateway could not record: a person is asked again; an automatic answer is
// repeated.
func (s *questions) unrecorded(now time.Time) {
	asks := false
	for i := range s.open {
		q := &s.open[i]
		switch {
		case !q.answered || !q.at.IsZero():
		case q.asks:
			q.answered, q.sent, asks = false, time.Time{}, true
		default:
			q.at, q.sent = now.Add(answerRetry), time.Time{}
		}
	}
	if asks {
		s.ask(now)
	}
}

func (s *questions) tick(now time.Time) {
	s.open = slices.DeleteFunc(s.open, func(q question) bool { return now.After(q.until) })
	for i := range s.open {
		if q := &s.open[i]; !q.at.IsZero() && !now.Before(q.at) {
			s.answer(now, q)
		}
	}
}
