package chat

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"voicegw/audit"
	"voicegw/conversation"
	"voicegw/orchestrator/execute"
	"voicegw/orchestrator/policy"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// call is one tool call of the model that is not answered yet.
type call struct {
	id       string // ours
	asked    ToolCall
	into     string // the call whose answer it gets; empty if it has one of its own
	prepared *registry.Prepared
	keys     policy.Keys
	budget   json.RawMessage

	began    time.Time
	progress time.Time // when the client is told that it still runs; zero for never
}

// progressEvery is how often the client is told of a tool that is still at work.
const progressEvery = 5 * time.Second

// runCalls decides the calls of a round in order, lets them run in parallel and returns when
// each has its answer. Those that were answered in an earlier try keep their answer.
func (t *turn) runCalls(ctx context.Context, r *round) {
	asked, first := r.asked(), t.count
	t.asked, t.answers = asked, make(map[string]registry.Envelope, len(asked))
	for i, a := range asked {
		var env registry.Envelope
		if known := r.Calls[i].Envelope; known != nil && json.Unmarshal(known, &env) == nil {
			t.count++
			t.answers[t.callName(t.count)] = env
			t.book.Charge(a.Name)
			if env.OK && !env.Meta.CacheHit {
				t.apply(env.Intents) // the audit has it from when it ran
			}
			t.deed(a.Name, a.Args)
			continue
		}
		t.decide(a)
	}
	defer t.noteAnswers(ctx, r, first)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	gone := ctx.Done()
	for len(t.open) > 0 {
		select {
		case r := <-t.results:
			t.take(r)
		case now := <-tick.C:
			t.tellProgress(now)
		case <-gone:
			// What can be stopped is; the rest finishes and is recorded.
			gone = nil
			t.calls.End()
		}
	}
}

// callName is the gateway's name of a call of the turn.
func (t *turn) callName(n int) string {
	return "call_" + strconv.Itoa(t.number) + "_" + strconv.Itoa(n)
}

// noteAnswers notes which answers of a round stand for good. Those of calls that were broken
// off because the client has left do not.
func (t *turn) noteAnswers(ctx context.Context, r *round, first int) {
	for i := range r.Calls {
		name := t.callName(first + i + 1)
		if t.handed[name] {
			continue
		}
		env := t.answers[name]
		if ctx.Err() != nil && !env.OK && !env.AsksUser() {
			t.anew[name] = true
			continue
		}
		r.Calls[i].Envelope = env.Kept().Encode()
	}
}

// deed names a call for the ledger: the same in each try of the message.
func (t *turn) deed(tool string, args json.RawMessage) string {
	what, _ := json.Marshal([]string{tool, string(args)}) // strings alone: it cannot fail
	t.made[string(what)]++
	name, _ := json.Marshal([]string{t.rec.Name, string(what), strconv.Itoa(t.made[string(what)])})
	return string(name)
}

// writes says whether a tool changes something.
func (t *turn) writes(tool string) bool {
	if t.tools == nil {
		return false
	}
	spec, ok := t.tools.Tool(tool)
	return ok && spec.SideEffects == registry.SideEffectsWrites
}

// decide says what becomes of a call.
func (t *turn) decide(a ToolCall) {
	t.count++
	if t.isClients(a.Name) {
		t.hand(a)
		return
	}
	deed := t.deed(a.Name, a.Args)
	c := &call{id: t.callName(t.count), asked: a, began: time.Now()}
	t.emit(&protocol.ToolStarted{CallID: c.id, Tool: a.Name, Category: t.category(a.Name)})
	d := t.book.Decide(policy.Call{ID: c.id, ProviderID: a.ID, Tool: a.Name, Args: a.Args, Turn: t.number})
	c.keys, c.budget = d.Keys, d.Budget
	t.toolsOff = t.toolsOff || d.OverBudget
	switch d.Verdict {
	case policy.Joined, policy.Repeated:
		c.into = d.Into
		t.open = append(t.open, c)
	case policy.Run:
		c.prepared = d.Prepared
		c.progress = c.began.Add(time.Duration(d.Prepared.Tool().LatencyBudgetMS) * time.Millisecond)
		t.open = append(t.open, c)
		t.rec.Wrote = t.rec.Wrote || t.writes(a.Name)
		t.calls.Run(execute.Job{Call: c.id, Turn: t.number, Prepared: d.Prepared, Keys: d.Keys, Message: deed})
	case policy.Ask:
		c.prepared = d.Prepared
		t.open = append(t.open, c)
		t.calls.Ask(execute.Job{Call: c.id, Turn: t.number, Prepared: d.Prepared, Keys: d.Keys, Message: deed})
	default:
		t.conclude(c, d.Envelope, false)
	}
}

// take takes what the executor reports.
func (t *turn) take(r any) {
	switch r := r.(type) {
	case execute.Result:
		took := time.Duration(r.Envelope.Meta.DurationMS) * time.Millisecond
		if r.Envelope.Meta.CacheHit {
			took = 0
		}
		slow := t.book.Slow()
		answers := t.book.Finished(r.Call, r.Envelope, took)
		if t.book.Slow() && !slow {
			t.a.opts.Logger.Warn("the tools of a turn are slow", "conversation_id", t.conv.ID, "turn", t.number, "tool_time_ms", t.book.Account().ToolTime.Milliseconds())
		}
		t.answerAll(r.Call, answers)
	case execute.Question:
		c := t.find(r.Call)
		if c == nil {
			return
		}
		if r.Refused != nil {
			t.answerAll(r.Call, t.book.Finished(r.Call, *r.Refused, 0))
			return
		}
		if r.Token == "" {
			t.answerAll(r.Call, t.book.Finished(r.Call, t.book.NotAsked(c.prepared), 0))
			return
		}
		env := t.book.Question(c.prepared, r.Token, r.Reference, r.ExpiresAt, false)
		t.emit(&protocol.ConfirmationRequest{Token: r.Token, Tool: c.asked.Name, Args: c.prepared.Args(),
			Preview: c.prepared.Preview(), ExpiresAt: protocol.Time{Time: r.ExpiresAt}})
		t.answerAll(r.Call, t.book.Asked(r.Call, store.QuestionName(r.Token), env))
	}
}

// answerAll concludes a call and those that wait for its answer.
func (t *turn) answerAll(id string, answers []policy.Answer) {
	for i, a := range answers {
		if c := t.remove(a.Call); c != nil {
			t.conclude(c, a.Envelope, i == 0)
		}
	}
	if len(answers) == 0 {
		return
	}
	again := answers[0].Envelope
	again.Meta.CacheHit, again.Meta.OriginalTurn = true, t.number
	for _, c := range append([]*call{}, t.open...) {
		if c.into == id { // the same call announced twice
			t.remove(c.id)
			t.conclude(c, again, false)
		}
	}
}

func (t *turn) find(id string) *call {
	for _, c := range t.open {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (t *turn) remove(id string) *call {
	for i, c := range t.open {
		if c.id == id {
			t.open = append(t.open[:i:i], t.open[i+1:]...)
			return c
		}
	}
	return nil
}

// conclude gives a call its answer, audits it and tells the client.
func (t *turn) conclude(c *call, env registry.Envelope, ran bool) {
	record := audit.Call{
		At: time.Now(), Tools: t.tools, Tool: c.asked.Name, Mode: registry.ModeText, Turn: t.number, ID: c.id, ProviderID: c.asked.ID,
		Key: c.keys.Idempotency, Business: c.keys.Business, Budget: c.budget, Envelope: env,
	}
	if c.prepared != nil {
		record.Args = c.prepared.Args()
	}
	if ran && env.OK && !env.Meta.CacheHit {
		record.Applied, record.Refused, record.Why = t.apply(env.Intents)
	}
	t.fresh.add(record.Record())
	t.answers[c.id] = env
	t.emit(toolEnded(c.id, c.asked.Name, t.category(c.asked.Name), env))
}

// toolEnded is what the client is told of an answer.
func toolEnded(id, tool, category string, env registry.Envelope) *protocol.ToolEnded {
	m := &protocol.ToolEnded{CallID: id, Tool: tool, Category: category, OK: env.OK,
		DurationMS: env.Meta.DurationMS, Deduplicated: env.Meta.CacheHit}
	if env.Error != nil {
		m.Error, _ = json.Marshal(env.Error) // it is written for the model as well: this cannot fail
	}
	if len(env.Meta.Clamped) > 0 {
		m.Clamped, _ = json.Marshal(env.Meta.Clamped)
	}
	return m
}

// audit adds to a record whose conversation it is of.
func (t *turn) audit(r audit.Record) {
	if t.a.opts.Audit == nil {
		return
	}
	s := t.session()
	r.SessionID, r.UserID, r.ConversationID, r.Agent = s.ID, s.UserID, s.ConversationID, s.Agent
	t.a.opts.Audit(r)
}

// apply does what intents ask of a text conversation: only a message for the next turn.
func (t *turn) apply(intents []registry.Intent) (applied, refused []registry.Intent, why string) {
	for _, i := range intents {
		if i.Type != registry.IntentSetPendingMessage {
			refused, why = append(refused, i), "there is no voice session"
			t.a.opts.Logger.Info("a tool's intent does not apply to text", "intent", string(i.Type), "conversation_id", t.conv.ID)
			continue
		}
		applied = append(applied, i)
		t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, Text: i.Message, Turn: t.number})
	}
	return applied, refused, why
}

// tellProgress tells the client of calls that outlast their latency budget.
func (t *turn) tellProgress(now time.Time) {
	for _, c := range t.open {
		if c.progress.IsZero() || now.Before(c.progress) {
			continue
		}
		c.progress = now.Add(progressEvery)
		t.emit(&protocol.ToolProgress{CallID: c.id, Tool: c.asked.Name, Category: t.category(c.asked.Name), DurationMS: now.Sub(c.began).Milliseconds()})
	}
}

func (t *turn) category(tool string) string {
	if t.tools == nil {
		return ""
	}
	if spec, ok := t.tools.Tool(tool); ok {
		return string(spec.Category)
	}
	return ""
}

// maxKept is the longest envelope that the conversation keeps, in bytes.
const maxKept = 8 << 10

// maxKeptExtra bounds what is kept of what comes beside an answer's text and calls, in bytes.
const maxKeptExtra = 64 << 10

// keptWhole says whether all of what comes beside an answer can be kept. Otherwise later turns
// are told of the calls in words, which need nothing beside them.
func keptWhole(reply Reply) bool {
	n := len(reply.Extra)
	for _, c := range reply.Calls {
		n += len(c.Extra)
	}
	return n <= maxKeptExtra
}

// keptExtra is what is kept of what comes beside an answer's text.
func keptExtra(reply Reply) json.RawMessage {
	if !keptWhole(reply) {
		return nil
	}
	return reply.Extra
}

// mostKept is maxKept, and more for a turn that is gone on with after the client's tools.
func (t *turn) mostKept() int {
	if len(t.req.Tools) > 0 {
		return 8 * maxKept
	}
	return maxKept
}

// objectOr returns a call's arguments, or an empty object when they are missing.
func objectOr(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// noteCalls puts a round's calls and answers where the model and the conversation find
// them.
func (t *turn) noteCalls(at time.Time, reply Reply) {
	t.messages = append(t.messages, Message{Role: RoleAssistant, Text: reply.Text, Calls: reply.Calls, Extra: reply.Extra})
	entry := conversation.Entry{At: at, Side: conversation.SideText, Role: conversation.RoleAssistant, Text: reply.Text, Turn: t.number, Extra: keptExtra(reply)}
	whole := keptWhole(reply)
	first := t.count - len(reply.Calls)
	for i, asked := range reply.Calls {
		name := t.callName(first + i + 1)
		if t.handed[name] {
			theirs := conversation.Call{ID: asked.ID, Tool: asked.Name, Args: objectOr(asked.Args), OK: true}
			if whole {
				theirs.Extra = asked.Extra
			}
			entry.Calls = append(entry.Calls, theirs)
			continue
		}
		env := t.answers[name]
		t.messages = append(t.messages, Message{Role: RoleTool, CallID: asked.ID, Text: string(env.Encode())})
		encoded := env.Kept().Encode()
		kept := conversation.Call{ID: asked.ID, Tool: asked.Name, OK: env.OK, Asked: env.AsksUser()}
		if whole && json.Valid(asked.Args) && len(asked.Args)+len(encoded) <= t.mostKept() && env.Meta.Tool != "" {
			kept.Args, kept.Envelope, kept.Extra = asked.Args, encoded, asked.Extra
			if e := env.Error; e != nil && e.ConfirmationRequest != nil && e.ConfirmationRequest.Token != "" {
				kept.Question = store.QuestionName(e.ConfirmationRequest.Token)
			}
		}
		entry.Calls = append(entry.Calls, kept)
	}
	t.entries = append(t.entries, entry)
}
