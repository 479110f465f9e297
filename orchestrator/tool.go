package orchestrator

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"voicegw/orchestrator/policy"
	"voicegw/prompts"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/transport"
)

// toolCall decides what becomes of a call of the model. Its one terminal is the answer
// that is sent, now or when it has finished, or the model's own cancellation.
func (m *machine) toolCall(ev transport.ToolCall) {
	if m.lastWordSaid() {
		m.refuseLate(ev)
		return
	}
	if m.turn == nil || m.turn.modelDone {
		m.openTurnMidway()
	}
	m.turn.calls++
	c := m.newCall(ev.Name, ev.Args)
	c.model, c.provider = ev.Call, ev.ID
	m.do(ToolStarted{Turn: c.turn, Call: c.id, Tool: c.tool})
	if m.policy.SpokenConfirmation && ev.Name == ConfirmAction {
		m.confirmAction(c, ev.Args)
		return
	}
	if len(m.calls) >= maxCalls {
		m.conclude(c, m.tooMany(c.tool), false)
		return
	}
	d := m.book.Decide(policy.Call{ID: c.id, ProviderID: ev.ID, Tool: ev.Name, Args: ev.Args, Turn: c.turn})
	c.keys, c.budget = d.Keys, d.Budget
	if d.OverBudget {
		m.turn.toolsOff = true
	}
	switch d.Verdict {
	case policy.Answered:
		m.conclude(c, d.Envelope, false)
	case policy.Joined, policy.Repeated:
		c.into = d.Into
		// Of one call announced twice the model waits for one answer, unless it has
		// withdrawn the first.
		first := m.call(d.First)
		c.repeated = d.Verdict == policy.Repeated && first != nil && first.open()
		m.calls = append(m.calls, c)
	case policy.Ask:
		m.ask(c, d.Prepared)
	case policy.Run:
		m.run(c, d.Prepared)
	}
}

// refuseLate answers a call that comes after the farewell: no turn follows that could use it.
func (m *machine) refuseLate(ev transport.ToolCall) {
	c := m.newCall(ev.Name, ev.Args)
	c.model, c.provider = ev.Call, ev.ID
	m.do(ToolStarted{Turn: c.turn, Call: c.id, Tool: c.tool})
	m.conclude(c, m.book.Refuse(c.tool, registry.NewError(registry.ErrorPermanent, toolerror.SessionEnding())), false)
}

// newCall is a call of the latest turn with a name of ours.
func (m *machine) newCall(tool string, asked json.RawMessage) call {
	m.callCount++
	return call{id: "call_" + strconv.Itoa(m.callCount), tool: tool, turn: m.lastTurn, asked: asked, askedAt: m.at}
}

// run lets a call run.
func (m *machine) run(c call, p *registry.Prepared) {
	c.prepared = p
	c.begunAt = m.at
	c.progressAt = m.at.Add(time.Duration(p.Tool().LatencyBudgetMS) * time.Millisecond)
	m.calls = append(m.calls, c)
	run := RunTool{Turn: c.turn, Call: c.id, Prepared: p, Keys: c.keys}
	if c.confirmed != nil {
		run.Confirmation = c.confirmed.reference
	}
	m.do(run)
}

// tooMany answers a call for which there is no room.
func (m *machine) tooMany(tool string) registry.Envelope {
	return m.book.Refuse(tool, registry.NewError(registry.ErrorRateLimit, toolerror.TooManyCalls()))
}

// toolFinished takes the result of what has run, and answers all that wait for it.
func (m *machine) toolFinished(in ToolFinished) {
	c := m.call(in.Call)
	if c == nil || c.prepared == nil || c.asking() {
		return // nothing runs under that name
	}
	c.handlerAt = in.BegunAt
	m.lastActive = m.at
	took := time.Duration(in.Envelope.Meta.DurationMS) * time.Millisecond
	if in.Envelope.Meta.CacheHit {
		took = 0
	}
	slow := m.book.Slow()
	answers := m.book.Finished(in.Call, in.Envelope, took)
	if m.book.Slow() && !slow {
		m.do(ToolsSlow{Turn: c.turn, Taken: m.book.Account().ToolTime, Limit: m.book.Budget().ToolTime})
	}
	m.answerAll(in.Call, answers)
}

// answerAll settles a call and those that joined it or repeat it.
func (m *machine) answerAll(id string, answers []policy.Answer) {
	for i, a := range answers {
		c := m.call(a.Call)
		if c == nil {
			continue
		}
		found := *c
		m.forgetCall(a.Call)
		m.conclude(found, a.Envelope, i == 0)
	}
	for _, c := range slices.Clone(m.calls) {
		if c.into == id && len(answers) > 0 { // it gets no answer of its own
			m.forgetCall(c.id)
			m.conclude(c, again(answers[0].Envelope, c.turn), false)
		}
	}
}

// again marks an answer for the audit of a call that was announced twice.
func again(env registry.Envelope, turn int) registry.Envelope {
	env.Meta.CacheHit, env.Meta.OriginalTurn = true, turn
	return env
}

// conclude gives a call its terminal: its intents are applied where it ran and succeeded,
// it is audited, the model and the client are told.
func (m *machine) conclude(c call, env registry.Envelope, ran bool) {
	var applied, refused []registry.Intent
	var why string
	if ran && env.OK && !env.Meta.CacheHit {
		applied, refused, why = m.applyAll(c.turn, env.Intents)
	}
	delivered := c.open() && m.phase != PhaseEnded
	record := m.record(c, env, applied, refused, why, delivered)
	switch {
	case delivered && c.model == "":
		text := prompts.ApprovedNotice(c.confirmed.tool, c.confirmed.reference, m.mark.JSON(env.Encode()))
		told := record
		if delivered = m.notify(notice{turn: c.turn, text: text, record: &told}); !delivered {
			record.Delivered, record.NotDelivered = false, m.notDelivered(c)
			m.do(Audit{Record: record})
		}
	case delivered:
		m.do(Audit{Record: record, Told: true})
		m.send(transport.ToolResult{Call: c.model, Output: env.Encode(), Scheduling: c.scheduling()})
	default:
		m.do(Audit{Record: record})
	}
	ended := ToolEnded{Turn: c.turn, Call: c.id, Tool: c.tool, Envelope: env, Delivered: delivered, Record: record, Asked: c.asked}
	ended.Queued, ended.Ran = c.times(env)
	m.do(ended)
	if !delivered || c.model == "" {
		return
	}
	t, aside := m.turn, c.waitsAside(m.caps)
	switch {
	case t == nil || t.number != c.turn:
	case aside:
		m.settleCalls(t) // what the model says meanwhile is speech enough
	default:
		m.answered(t, ran)
	}
}

// answered goes on with a turn that has one result more. What ran gives the model new
// time to answer; what was refused does not, or a model could go on for ever.
func (m *machine) answered(t *turn, ran bool) {
	if ran || t.spoke {
		t.owedFrom = m.at
	}
	t.spoke = false
	if m.responding {
		t.calls++ // this response began without the result: it needs another one
	}
	m.settleCalls(t)
}

// settleCalls asks for the answer once the response is over and nothing is owed
// to the model.
func (m *machine) settleCalls(t *turn) {
	if !t.waiting || m.callsOpen(t.number) {
		return
	}
	t.waiting = false
	if m.caps.RespondNeeded {
		t.calls = 0
		if !m.speaking { // what the user says now brings its answer by itself
			m.respond(t)
		}
		return
	}
	// This model went on while the tools ran, and has ended its answer; if it has
	// said nothing yet, it still owes one.
	t.modelDone = !t.modelAt.IsZero()
}

// respond asks for the answer of a turn.
func (m *machine) respond(t *turn) {
	m.send(transport.Respond{ToolsOff: t.toolsOff && m.caps.ToolsOff})
}

// toolCancelled notes that the model wants no answer any more. A tool that cannot
// be stopped goes on, and its result is never sent.
func (m *machine) toolCancelled(ev transport.ToolCancelled) {
	for i := range m.calls {
		c := &m.calls[i]
		if c.model == "" || !slices.Contains(ev.Calls, c.model) {
			continue
		}
		if c.confirmed != nil {
			c.model = "" // it is told of what was approved in a turn of its own
			continue
		}
		c.cancelled = true
		runs := c.id
		if c.into != "" {
			runs = c.into
		}
		if r := m.call(runs); r != nil && r.prepared != nil && r.prepared.Tool().Cancellable && !r.stopping && !m.wanted(runs) {
			r.stopping = true
			m.do(CancelTool{Call: r.id, Tool: r.tool})
		}
	}
	if t := m.turn; t != nil {
		m.settleCalls(t)
	}
}
