package calls

import (
	"slices"
	"time"

	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/protocol"
	"voicegw/registry"
)

// Input is what comes back of a Run, Ask or Resolve: Finished, Recorded or Resolved. The set
// is closed.
type Input interface{ input() }

// Finished is the result of a Run.
type Finished struct {
	Call     string
	Envelope registry.Envelope
	// BegunAt is when the handler began; zero if it did not.
	BegunAt time.Time
}

func (Finished) input() {}

// Finished takes the result of what has run, and answers all that wait for it. It reports
// false for a call that does not run.
func (c *Calls) Finished(in Finished) (do []Action, ok bool) {
	k := c.find(in.Call)
	if k == nil || !k.working() {
		return nil, false
	}
	slow := c.book.Slow()
	c.book.Took(in.Envelope)
	if c.book.Slow() && !slow {
		do = append(do, Slow{Turn: k.turn, Taken: c.book.Account().ToolTime, Limit: c.book.Budget().ToolTime})
	}
	askedAt := k.askedAt
	answers := c.finish(k.id, in.Envelope)
	if !in.BegunAt.IsZero() {
		a := answers[0].(Answer)
		a.Queued, a.Took = max(in.BegunAt.Sub(askedAt), 0), time.Duration(in.Envelope.Meta.DurationMS)*time.Millisecond
		answers[0] = a
	}
	return slices.Concat(do, answers, c.places()), true
}

// finish ends a call with its answer, and with it all that have joined it, in the order in
// which they were asked for. A good answer is kept for repeats.
func (c *Calls) finish(id string, env registry.Envelope) []Action {
	k := c.take(id)
	var others, echoes []call
	c.open = slices.DeleteFunc(c.open, func(o call) bool {
		switch {
		case o.into != id:
			return false
		case o.echo:
			echoes = append(echoes, o)
		default:
			others = append(others, o)
		}
		return true
	})
	c.keep(k, others, env)
	env = c.book.Warned(env)
	do := []Action{c.answer(&k, env, true)}
	for _, j := range others {
		do = append(do, c.answer(&j, policy.Again(env, k.turn), false))
	}
	for _, e := range echoes {
		again := env
		again.Meta.CacheHit, again.Meta.OriginalTurn = true, e.turn
		do = append(do, c.answer(&e, again, false))
	}
	c.owed(do)
	return do
}

// owed marks the answers beside which the model waits for others of the same turn.
func (c *Calls) owed(answers []Action) {
	waits := map[int]bool{}
	for i, a := range slices.Backward(answers) {
		a := a.(Answer)
		a.Owed = a.Owed || waits[a.Turn]
		waits[a.Turn] = waits[a.Turn] || a.Reader.wants()
		answers[i] = a
	}
}

// keep stores a good answer, for the call and for those that have joined it under keys of
// their own.
func (c *Calls) keep(k call, joined []call, env registry.Envelope) {
	s := policy.Stored{Keys: k.keys, Tool: k.runs, Asked: k.asked, Envelope: env, Turn: k.turn}
	c.book.Keep(s)
	for _, j := range joined {
		if !c.taken(j.keys.Idempotency) {
			s.Keys.Idempotency, s.Asked = j.keys.Idempotency, j.asked
			c.book.Keep(s)
		}
	}
}

// cancelled answers a queued call that is not to begin any more.
func (c *Calls) cancelled(k *call) []Action {
	return c.finish(k.id, k.prepared.Refuse(registry.NewError(registry.ErrorInternal, toolerror.CancelledBefore())))
}

// stop stops a call that can be stopped, or keeps it from beginning.
func (c *Calls) stop(id string) []Action {
	k := c.find(id)
	if k.state == queued {
		return c.cancelled(k)
	}
	c.move(k, stopping)
	return []Action{Cancel{Call: k.id, Tool: k.tool}}
}

// Interrupted stops what an interruption ends: calls that can be stopped, apart from what a
// person has approved and from calls that the model goes on beside.
func (c *Calls) Interrupted(beside func(*registry.Prepared) bool) (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.stoppable() && k.approval == nil && !beside(k.prepared) {
			do = append(do, c.stop(k.id)...)
		}
	}
	return do
}

// Withdrawn notes that the model wants no answer to calls any more, by the names that would
// have answered them. A tool that cannot be stopped goes on, and its result is never sent.
func (c *Calls) Withdrawn(models []string) (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.model == "" || k.put() || !slices.Contains(models, k.model) {
			continue
		}
		open := c.find(k.id)
		if open == nil {
			continue // it was queued, and is answered already
		}
		open.withdraw(Cancelled)
		runs := open
		if open.state == joined {
			runs = c.find(open.into)
		}
		if runs != nil && runs.stoppable() && !c.wanted(runs.id) {
			do = append(do, c.stop(runs.id)...)
		}
	}
	return do
}

// withdraw notes that the model has had its answer, or wants none. Of what a person has
// approved it is told all the same, in a turn of its own.
func (k *call) withdraw(because Reader) {
	switch {
	case k.approval != nil:
		k.reader, k.model = ByNotice, ""
	case k.reader != Repeated:
		k.reader = because
	}
}

// Superseded answers the calls of earlier turns, for a model that does not withdraw them
// itself: before its next answer it must not owe anything to an old one.
func (c *Calls) Superseded() (do []Action) {
	for i := range c.open {
		if k := &c.open[i]; !k.put() && k.reader == ByCall {
			do = append(do, Overtaken{Model: k.model, Envelope: c.overtaken(k)})
			k.withdraw(Superseded)
		}
	}
	return do
}

// overtaken is the answer to a call that the user's next turn has overtaken.
func (c *Calls) overtaken(k *call) registry.Envelope {
	words := toolerror.Overtaken(k.tool)
	switch first := c.find(k.into); {
	case k.state == asking:
		words = toolerror.OvertakenQuestion(k.tool)
	case k.approval != nil || first != nil && first.put():
		words = toolerror.OvertakenApproval()
	}
	e := registry.NewError(registry.ErrorConflict, words)
	e.PartialSideEffects = k.prepared != nil && k.state != asking && k.prepared.Tool().SideEffects == registry.SideEffectsWrites
	return c.book.Refuse(k.tool, e)
}

// Over says that the conversation is over: what has not begun does not begin, apart from
// what a person has approved.
func (c *Calls) Over() (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.state == queued && k.approval == nil {
			do = append(do, c.cancelled(&k)...)
		}
	}
	return do
}

// Tick tells the client of calls that outlast their latency budget, and ends questions that
// were not answered in time.
func (c *Calls) Tick(at time.Time) (do []Action) {
	for i := range c.open {
		k := &c.open[i]
		if !k.timed() || at.Before(k.progressAt) {
			continue
		}
		k.progressAt = at.Add(c.rules.ProgressEvery)
		do = append(do, Tell{&protocol.ToolProgress{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool, Category: c.category(k.tool), DurationMS: at.Sub(k.queuedAt).Milliseconds()}})
	}
	for i := range c.open {
		if k := &c.open[i]; c.rules.Live && k.state == waiting && !at.Before(k.question.expiresAt) {
			c.move(k, resolving)
			do = append(do, Resolve{Token: k.question.token, By: ByClock})
		}
	}
	return do
}

// timed says whether the client is told of the call from time to time.
func (k *call) timed() bool { return k.prepared != nil && (k.state == queued || k.working()) }

// Due calls sooner with each time at which a Tick is to come.
func (c *Calls) Due(sooner func(time.Time)) {
	for i := range c.open {
		switch k := &c.open[i]; {
		case k.timed():
			sooner(k.progressAt)
		case c.rules.Live && k.state == waiting:
			sooner(k.question.expiresAt)
		}
	}
}
