package calls

import (
	"cmp"
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Input is a result of a Run, Ask or Resolve, or a running tool's Nested or Progressed. The set is closed.
type Input interface {
	take(c *Calls, at time.Time) []Action
}

// Take passes an input to its method.
func (c *Calls) Take(at time.Time, in Input) []Action { return in.take(c, at) }

// Finished is the result of a Run.
type Finished struct {
	Call     string
	Envelope registry.Envelope
	BegunAt  time.Time // when the handler began; zero if it did not begin
}

func (in Finished) take(c *Calls, _ time.Time) []Action {
	do, _ := c.Finished(in)
	return do
}

// Running returns the turn of a running call, and whether the model waits for its answer.
func (c *Calls) Running(id string) (turn int, wanted, ok bool) {
	k := c.find(id)
	if k == nil || !k.working() {
		return 0, false, false
	}
	return k.turn, c.wanted(id), true
}

// Finished answers every call that waits for the result. ok is false if that call is not running.
func (c *Calls) Finished(in Finished) (do []Action, ok bool) {
	k := c.find(in.Call)
	if k == nil || !k.working() {
		return nil, false
	}
	slow := c.book.Slow()
	c.book.AddToolTime(in.Envelope)
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
	return slices.Concat(do, answers, c.startQueued()), true
}

// finish ends a call and the calls that joined it, in the model's order. A successful answer is kept for repetitions.
func (c *Calls) finish(id string, env registry.Envelope) []Action {
	k := c.remove(id)
	kept := Stored{Keys: k.keys, Tool: k.runs, Asked: k.asked, Envelope: env, Turn: k.turn}
	c.book.Keep(kept)
	env = c.book.WithUsage(env)
	do := []Action{c.answer(&k, env, true)}
	joined := slices.DeleteFunc(slices.Clone(c.open), func(o call) bool { return o.into != id })
	for _, echo := range []bool{false, true} {
		for _, j := range joined {
			if j.echo != echo {
				continue
			}
			c.remove(j.id)
			again := Again(env, k.turn)
			if echo {
				again = env
				again.Meta.CacheHit, again.Meta.OriginalTurn = true, j.turn
			} else if !c.taken(j.keys.Idempotency) {
				kept.Keys.Idempotency, kept.Asked = j.keys.Idempotency, j.asked
				c.book.Keep(kept)
			}
			do = append(do, c.answer(&j, again, false))
		}
	}
	return do
}

func (c *Calls) cancelled(k *call) []Action {
	return c.finish(k.id, k.prepared.Refuse(registry.NewError(registry.ErrorInternal, prompts.CancelledBefore)))
}

func (c *Calls) stop(id string) []Action {
	k := c.find(id)
	if k.state == queued {
		return c.cancelled(k)
	}
	c.setState(k, stopping)
	return []Action{Cancel{Call: k.id, Tool: k.tool}}
}

// Interrupted stops the stoppable calls, except approved ones and those during which the model continues.
func (c *Calls) Interrupted(continues func(*registry.Prepared) bool) (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.stoppable() && k.approval == nil && !continues(k.prepared) {
			do = append(do, c.stop(k.id)...)
		}
	}
	return do
}

// Withdrawn records that the model wants no answers to these calls, by its names. Their tools may continue.
func (c *Calls) Withdrawn(models []string) (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.model == "" || k.wasAsked() || !slices.Contains(models, k.model) {
			continue
		}
		open := c.find(k.id)
		if open == nil {
			continue // it was queued and is answered already
		}
		open.withdraw(cancelled)
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

// Unlinked records the loss of the model's connection: it gets the results of open calls in a separate turn.
func (c *openCalls) Unlinked() {
	for i := range c.open {
		if k := &c.open[i]; !k.wasAsked() && k.reader == byCall {
			k.reader, k.model, k.unlinked = byNotice, "", true
		}
	}
}

// withdraw records that the model was answered, or wants no answer. An approved call's result still reaches it.
func (k *call) withdraw(because reader) {
	switch {
	case k.approval != nil:
		k.reader, k.model = byNotice, ""
	case k.reader != repeated:
		k.reader = because
	}
}

// Superseded answers the calls of earlier turns, for a model that does not withdraw them and waits for that.
func (c *Calls) Superseded() (do []Action) {
	for i := range c.open {
		if k := &c.open[i]; !k.wasAsked() && k.reader == byCall {
			do = append(do, Overtaken{Model: k.model, Envelope: c.overtaken(k)})
			k.withdraw(superseded)
		}
	}
	return do
}

func (c *Calls) overtaken(k *call) registry.Envelope {
	words := prompts.Overtaken(k.tool)
	switch first := c.find(k.into); {
	case k.state == asking:
		words = prompts.OvertakenQuestion(k.tool)
	case k.approval != nil || first != nil && first.wasAsked():
		words = prompts.OvertakenApproved
	}
	e := registry.NewError(registry.ErrorConflict, words)
	e.PartialSideEffects = k.prepared != nil && k.state != asking && k.prepared.Tool().SideEffects == spec.SideEffectsWrites
	return c.book.Refuse(k.tool, e)
}

// Over ends the conversation: queued calls do not start, except approved ones.
func (c *Calls) Over() (do []Action) {
	for _, k := range slices.Clone(c.open) {
		if k.state == queued && k.approval == nil {
			do = append(do, c.cancelled(&k)...)
		}
	}
	return do
}

// Tick reports calls beyond their latency budget to the client, and expires questions.
func (c *Calls) Tick(at time.Time) (do []Action) {
	for i := range c.open {
		k := &c.open[i]
		if !k.timed() || at.Before(k.progressAt) {
			continue
		}
		k.progressAt = at.Add(ProgressEvery)
		do = append(do, ToClient{&protocol.ToolProgress{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool,
			Category: c.category(k.tool), DurationMS: at.Sub(k.queuedAt).Milliseconds()}})
	}
	for i := range c.open {
		if k := &c.open[i]; c.rules.Live && k.state == waiting && !at.Before(k.question.ExpiresAt) {
			c.setState(k, resolving)
			do = append(do, Resolve{Token: k.question.Token, By: ByClock})
		}
	}
	return do
}

func (k *call) timed() bool { return k.prepared != nil && (k.state == queued || k.working()) }

// Due calls sooner with each time at which Tick must be called.
func (c *Calls) Due(sooner func(time.Time)) {
	for i := range c.open {
		switch k := &c.open[i]; {
		case k.timed():
			sooner(k.progressAt)
		case c.rules.Live && k.state == waiting:
			sooner(k.question.ExpiresAt)
		}
	}
}

// progressInterval is the minimum time before the model's first progress notice about a call, and between two.
const progressInterval = 5 * time.Second

// Progressed is a running tool's progress: a text and the finished part, from 0 to 1, or negative if unknown. It may
// come at any rate, and after the call's end.
type Progressed struct {
	Call, Text string
	Fraction   float64
}

func (in Progressed) take(c *Calls, _ time.Time) []Action {
	c.Progressed(in)
	return nil
}

// Progress is the progress of a call for the model. Fraction is that of Progressed.
type Progress struct {
	Tool, Text string
	Fraction   float64
}

type progress struct {
	Progress
	due    time.Time // when the model may get it; zero if the model knows it
	sentAt time.Time // when the model last got progress; zero if never
}

// Progressed keeps the newest progress of a call for the model.
func (c *openCalls) Progressed(in Progressed) {
	if k := c.find(in.Call); k != nil && k.wantsProgress() && in.Text != "" && in.Text != k.progress.Text {
		k.progress.Progress = Progress{Tool: k.tool, Text: in.Text, Fraction: in.Fraction}
		k.progress.due = cmp.Or(k.progress.sentAt, k.queuedAt).Add(progressInterval)
	}
}

// wantsProgress reports whether the model waits for the result of a running tool on this connection.
func (k *call) wantsProgress() bool { return k.state == running && k.reader == byCall && k.model != "" }

// ProgressAt returns when the model may get the progress of a call; zero without any.
func (c *openCalls) ProgressAt() (first time.Time) {
	for i := range c.open {
		if k := &c.open[i]; k.wantsProgress() && !k.progress.due.IsZero() && (first.IsZero() || k.progress.due.Before(first)) {
			first = k.progress.due
		}
	}
	return first
}

// TakeProgress returns the progress that is due, and records that the model knows it.
func (c *openCalls) TakeProgress(at time.Time) (all []Progress) {
	for i := range c.open {
		k := &c.open[i]
		if k.wantsProgress() && !k.progress.due.IsZero() && !at.Before(k.progress.due) {
			k.progress.due, k.progress.sentAt = time.Time{}, at
			all = append(all, k.progress.Progress)
		}
	}
	return all
}

// Holds reports whether the model waits for the answer to a call for which but is false.
func (c *openCalls) Holds(but func(*registry.Prepared) bool) bool {
	return c.first(func(k *call) bool { return k.awaited() && !but(k.prepared) }) != nil
}
