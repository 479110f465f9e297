package orchestrator

import (
	"slices"
	"strings"
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// send sends a command without the gateway's mark, because its text comes from outside. Without a connection, only the
// beginnings of turns are kept for the next one.
func (m *turnControl) send(cmd transport.Command) {
	switch c := cmd.(type) {
	case transport.UserText:
		c.Text = m.mark.Foreign(c.Text)
		m.sendText(c.Text)
		return
	case transport.ToolResult:
		c.Output = m.mark.JSON(c.Output)
		cmd = c
		m.resulted(m.at)
		m.link.changed()
	case transport.ActivityStart, transport.ActivityEnd:
		m.giveBefore()
		m.link.changed()
		m.do(Command{cmd})
		return
	}
	if !m.down() {
		m.do(Command{cmd})
	}
}

func (m *turnControl) sendText(text string) { m.sendWords(transport.UserText{Text: text}) }

func (m *turnControl) sendWords(words transport.UserText) {
	m.giveBefore()
	m.link.changed()
	m.asked()
	if m.down() && m.turn != nil {
		m.turn.queued = m.link.count
	}
	m.do(Command{words})
}

// sendNotice sends the gateway's own words with its mark. If they open a turn, a new connection gets them again.
func (m *turnControl) sendNotice(words ...string) { m.sendNoticeOf("", words...) }

// sendNoticeOf is sendNotice with the answer to the question of a model's call.
func (m *turnControl) sendNoticeOf(asked string, words ...string) {
	text := m.marked(words)
	if t := m.turn; t != nil && (t.modelAt.IsZero() || !t.spoke) {
		t.told = text
	}
	m.sendWords(transport.UserText{Text: text, Overtakes: asked})
}

func (m *turnControl) marked(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, m.mark.Notice(w))
	}
	return strings.Join(all, "\n")
}

func (m *turnControl) settleCuts() {
	m.cuts = slices.DeleteFunc(m.cuts, func(c cut) bool {
		due := !m.at.Before(c.deadline)
		if due {
			m.settleCut(c)
		}
		return due
	})
}

func (m *turnControl) respond(t *turn) {
	m.giveBefore()
	m.send(transport.Respond{ToolsOff: t.toolsOff && m.caps.ToolsOff})
}

func (m *turnControl) cancel() {
	if m.caps.Cancel {
		m.send(transport.Interrupt{})
	}
}

// settleCut reports the heard part of a flushed item to the model, unless all of it was.
func (m *turnControl) settleCut(c cut) {
	if c.exact {
		if m.sayings != nil {
			m.sayings.gone = heardItem{c.item, c.heardMS}
		}
		return
	}
	if m.caps.Truncate && !c.whole() {
		m.send(transport.Truncate{Item: c.item, AudioMS: c.heardMS})
	}
}

// take sends an image to the model. It is not repeated on another connection.
func (in UserImage) take(m *machine) {
	switch {
	case m.ending():
		m.do(Failed{Failure: FailureEnding})
	case !m.caps.Images:
		m.do(Failed{Failure: FailureNotAvailable})
	case m.down(), m.sayings.noticeOpen():
		m.do(Failed{Failure: FailureUnsent, Retryable: true})
	default:
		m.send(transport.Image(in))
	}
}

func (m *turnControl) say(id, text string) {
	m.show(id, text)
	m.send(transport.UserText{Text: text})
}

func (m *turnControl) show(id, text string) {
	m.user.worded, m.user.final = m.turns.last, m.turns.last
	m.user.wording = m.user.wording.with(m.turns.last, textID(id, m.turns.last), text)
	m.do(Transcript{Turn: m.turns.last, ID: textID(id, m.turns.last), Role: transport.RoleUser, Text: text, Final: true, StartedAt: m.at})
}

func (m *turnControl) sendAnswer(n notice) {
	if n.record != nil {
		m.do(Audit{Record: *n.record, Told: true})
	}
	if n.job != "" {
		m.do(JobTold{Job: n.job})
	}
	m.sendNoticeOf(n.asked, n.text)
}

// ask repeats the user's request on a new connection. A model that answers on request finds it in the history.
func (m *turnControl) ask(t *turn, how LinkHow) {
	m.asked()
	words := m.user.wording.of(t.number)
	switch {
	case m.caps.RespondNeeded && (how != LinkFresh || words == ""):
		m.respond(t)
	case words != "":
		m.sendText(m.repeats(t, m.mark.Foreign(words)))
	default:
		m.sendText(m.marked(m.mayCall(t, prompts.NudgeNotice)))
	}
}

func (m *turnControl) repeats(t *turn, request string) string {
	var before []string
	if t.given {
		before = append(before, prompts.ResultsBefore)
	}
	if before = m.mayCall(t, before...); len(before) == 0 {
		return request
	}
	return m.marked(before) + "\n" + request
}

// mayCall informs the model once that the turn's budget is used up.
func (m *turnControl) mayCall(t *turn, words ...string) []string {
	if t.toolsOff && !m.caps.ToolsOff {
		words = append(words, prompts.WithoutTools)
	}
	return words
}

func (m *turnControl) asked() {
	if l := &m.link; l.proof != proven && !m.down() {
		l.proof, l.proofBy = asked, m.at.Add(proofPatience)
	}
}

// mute ignores the user, so that nothing cuts the farewell off.
func (m *turnControl) mute() {
	if m.user.voice != muted {
		m.user.voice = muted
		m.do(MuteUser{})
	}
}

// Text from the user's page waits in State.contexts until the model can take it: at once if
// it takes an entry at any time. If an entry ends the answer that is being generated, it waits until the model is
// silent, but not longer than until something else asks for the next answer: that ends the answer, too.

type page struct {
	contexts []UserContext // texts that the model lacks, oldest first
	resultAt time.Time     // when the model got a result that it has not answered yet; zero without one
	sayings  *sayings      // nil before the first
}

func (m *turnControl) resulted(at time.Time) {
	if !m.resultAt.Equal(at) {
		m.page = &page{m.contexts, at, m.sayings}
	}
}

// take handles text from the page. It changes nothing of the user's: a page cannot speak for its user.
func (in UserContext) take(m *machine) {
	switch {
	case m.ending():
		m.do(Failed{Failure: FailureEnding, Ref: OfContext})
	case in.Known:
		m.do(ContextGiven{in.Role, in.Text})
	case m.caps.AddItem == transport.AddItemNone:
		m.do(Failed{Failure: FailureNotAvailable, Ref: OfContext})
	case len(m.contexts) >= maxContexts && (in.Role == "" || len(m.contexts) >= maxEarlier):
		// The oldest is not dropped instead: the page would not know.
		m.do(Failed{Failure: FailureUnsent, Retryable: true, Ref: OfContext})
	default:
		m.page = &page{append(slices.Clone(m.contexts), in), m.resultAt, m.sayings}
	}
}

// listens reports whether text would interrupt nothing. It does not wait for a speaking user, or the answer would lack
// it.
func (s State) listens() bool {
	switch s.caps.AddItem {
	case transport.AddItemLive:
		return !s.down()
	case transport.AddItemIdle:
		return !s.down() && !s.deafInCall() && !s.underWay() && s.hasAnswered()
	default:
		return false
	}
}

func (s State) deafInCall() bool {
	if s.caps.AddItemBeside {
		return s.calls.Holds(s.continues)
	}
	return s.calls.Awaited() > 0
}

func (s State) hasAnswered() bool {
	t := s.turn
	return t == nil || t.stage == done || t.cut != uncut || t.stage == owing && s.calls.Awaited() > 0
}

func (s State) contextAt() (until time.Time) {
	if len(s.contexts) == 0 {
		return until
	}
	return s.entryAt()
}

// entryAt returns until when texts for a silent model wait for an answer that may be about to begin. Noise and some
// results are never answered.
func (s State) entryAt() (until time.Time) {
	if s.caps.AddItem == transport.AddItemLive || !s.listens() {
		return until
	}
	if s.user.unanswered && !s.user.speaks() {
		until = s.user.since.Add(s.policy.NudgeAfter)
	}
	if !s.resultAt.IsZero() {
		until = latest(until, s.resultAt.Add(s.policy.NudgeAfter))
	}
	return latest(until, s.workedUntil())
}

// giveBefore sends the waiting texts before a request for an answer. During a call, some models then close the
// connection.
func (m *turnControl) giveBefore() {
	if !m.down() && m.caps.AddItem != transport.AddItemNone && !m.deafInCall() {
		m.give()
		m.takeNews()
	}
}

// giveAnew sends the waiting texts on a new connection, which generates nothing yet.
func (m *turnControl) giveAnew() {
	m.resulted(time.Time{})
	if len(m.contexts) > 0 && m.caps.AddItem == transport.AddItemNone {
		m.keepContexts() // a model with the replayed history knows
		m.do(Failed{Failure: FailureNotAvailable, Ref: OfContext})
		return
	}
	m.give()
}

func (m *turnControl) give() {
	if len(m.contexts) == 0 {
		return
	}
	for _, c := range m.contexts {
		m.link.changed()
		var item transport.Past = transport.PastUser{Text: m.mark.Notice(prompts.PageContext(c.Text))}
		switch c.Role {
		case transport.RoleUser:
			item = transport.PastUser{Text: m.mark.Foreign(c.Text)}
		case transport.RoleAssistant:
			item = transport.PastAssistant{Text: m.mark.Foreign(c.Text)}
		}
		if !c.exact { // the conversation has it as an item
			m.do(ContextGiven{c.Role, c.Text})
		}
		m.do(Command{transport.AddItem{Item: item}})
	}
	m.page = &page{nil, m.resultAt, m.sayings}
}

// keepContexts leaves the waiting texts to the conversation, because this model will not get them.
func (m *turnControl) keepContexts() {
	m.do(m.Ungiven()...)
	m.page = &page{nil, m.resultAt, m.sayings}
}

// Ungiven returns a ContextGiven for each waiting text, for a session that ends without a step.
func (s State) Ungiven() (all []Action) {
	for _, c := range s.contexts {
		if !c.exact {
			all = append(all, ContextGiven{c.Role, c.Text})
		}
	}
	return all
}

func (s State) contextTexts() (all []string) {
	for _, c := range s.contexts {
		if !c.exact {
			all = append(all, c.Text)
		}
	}
	return all
}

// A tool's newest progress reaches the model as text without a turn, like a page's context, and waits for the same
// moments. A model that accepts no text during a call gets none.

// newsAt returns when the model gets the progress of calls; zero without any.
func (s State) newsAt() (at time.Time) {
	if s.phase != PhaseActive || !s.listens() {
		return at
	}
	if at = s.calls.ProgressAt(); at.IsZero() {
		return at
	}
	return latest(at, s.entryAt())
}

// takeNews sends the progress of calls. A resume handle need not include it.
func (m *turnControl) takeNews() {
	if m.phase != PhaseActive {
		return
	}
	for _, n := range m.calls.TakeProgress(m.at) {
		m.do(Command{transport.AddItem{Item: transport.PastUser{Text: m.mark.Notice(prompts.Progress(n.Tool, n.Text, n.Fraction))}}})
	}
}
