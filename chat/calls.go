package chat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// runCalls decides the calls of a round in order, runs them in parallel and returns when each has an answer.
func (t *turn) runCalls(ctx context.Context, r *round) {
	asked, first := r.asked(), t.calls.Count()
	t.asked = asked
	for i, a := range asked {
		var env registry.Envelope
		if known := r.Calls[i].Envelope; known != nil && json.Unmarshal(known, &env) == nil {
			t.answers[t.calls.NextName()] = env
			if env.OK || env.Error != nil && env.Error.PartialSideEffects {
				t.calls.Done(t.number, a.Name, a.Args)
			}
			t.calls.Book().Charge(t.tools, a.Name)
			if env.OK && !env.Meta.CacheHit {
				t.again = true
				t.apply(env.Intents) // audited when it ran
			}
			t.again = false
			t.ledgerName(a.Name, a.Args)
			continue
		}
		in := calls.Called{Turn: t.number, Model: a.ID, Provider: a.ID, Tool: a.Name, Args: a.Args}
		if slices.ContainsFunc(t.req.Tools, func(tool textmodel.Tool) bool { return tool.Name == a.Name }) {
			t.hand(in)
			continue
		}
		in.Message = t.ledgerName(a.Name, a.Args)
		t.do(t.calls.Called(time.Now(), in))
	}
	defer t.noteAnswers(ctx, r, first)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	gone := ctx.Done()
	for t.calls.UnderWay() > 0 {
		select {
		case in := <-t.results:
			t.take(in)
		case now := <-tick.C:
			t.do(t.calls.Tick(now))
		case <-gone:
			// Calls that can't be stopped finish and are recorded.
			gone = nil
			t.runs.End()
			t.do(t.calls.Over())
		}
	}
}

func (t *turn) callName(n int) string { return callPrefix(t.number) + strconv.Itoa(n) }

func callPrefix(turn int) string { return "call_" + strconv.Itoa(turn) + "_" }

// noteAnswers records the final answers of a round. Calls aborted because the client left are made again.
func (t *turn) noteAnswers(ctx context.Context, r *round, first int) {
	for i := range r.Calls {
		name := t.callName(first + i + 1)
		if t.handed[name] {
			continue
		}
		env := t.answers[name]
		if ctx.Err() != nil && !env.OK && !env.AsksUser() {
			t.rerun[name] = true
			continue
		}
		r.Calls[i].Envelope = env.Kept().Encode()
	}
}

// ledgerName names a call in the ledger. The name is the same in each attempt at the message.
func (t *turn) ledgerName(tool string, args json.RawMessage) string {
	what, _ := json.Marshal([]string{tool, string(args)}) // strings only: cannot fail
	t.made[string(what)]++
	name, _ := json.Marshal([]string{t.rec.Name, string(what), strconv.Itoa(t.made[string(what)])})
	return string(name)
}

func (t *turn) writes(tool string) bool {
	if t.tools == nil {
		return false
	}
	called, ok := t.tools.Tool(tool)
	return ok && called.SideEffects == spec.SideEffectsWrites
}

func (t *turn) take(in calls.Input) {
	t.report(Step{Got: in})
	if done, ok := in.(calls.Finished); ok {
		done.Envelope = t.knowsAgent(done.Envelope)
		in = done
	}
	t.do(t.calls.Take(time.Now(), in))
}

func (t *turn) do(all []calls.Action) {
	t.report(Step{Did: all})
	for _, a := range all {
		switch a := a.(type) {
		case calls.Run:
			t.rec.Wrote = t.rec.Wrote || t.writes(a.Prepared.Tool().ToolID)
			t.runs.Run(a)
		case calls.Ask:
			t.runs.Ask(a)
		case calls.Permit:
			t.runs.Permit(a)
		case calls.ToClient:
			t.emit(a.Message)
		case calls.Slow:
			t.a.opts.Logger.Warn("slow tools in a turn", "conversation_id", t.conv.ID, "turn", t.number,
				"tool_time_ms", a.Taken.Milliseconds())
		case calls.Answer:
			t.toolsOff = t.toolsOff || a.OverBudget
			record := a.Record(time.Now(), t.apply(a.Intents()))
			t.fresh.add(record)
			t.answers[a.Call] = a.Envelope
			t.emit(a.Message())
			t.show(a, record)
		}
	}
}

func (t *turn) audit(r audit.Record) {
	if t.a.opts.Audit != nil {
		t.unwritten.Add(&r)
		t.a.opts.Audit(t.ours(r))
	}
}

const auditWait = 5 * time.Second

// waitForAudit must be called before a call's answer is stored: an attempt that finds the answer writes no record.
func (t *turn) waitForAudit() {
	if left := t.unwritten.Wait(auditWait); left > 0 {
		t.a.opts.Logger.Warn("the audit log is slow: if the gateway dies now, records are lost",
			"conversation_id", t.conv.ID, "turn", t.number, "records", left)
	}
}

func (t *turn) ours(r audit.Record) audit.Record {
	s := t.session()
	r.SessionID, r.UserID, r.ConversationID = s.ID, s.UserID, s.ConversationID
	if r.Agent == "" {
		r.Agent, r.AgentVersion = s.Agent, t.persona.Version
	}
	return r
}

func (t *turn) show(a calls.Answer, r audit.Record) {
	if !t.req.Inside {
		return
	}
	m, err := a.Inside(t.ours(r))
	if err != nil {
		t.a.opts.Logger.Error("encoding an audit record for the client failed", "call_id", a.Call, "error", err)
		return
	}
	t.emit(m)
}

// apply applies intents. Text conversations support two: a message for the next turn, and a switch of agents.
func (t *turn) apply(intents []registry.Intent) (e calls.Effect) {
	for _, i := range intents {
		if i.Type == registry.IntentSwitchAgent {
			if e.Why = t.accept(i); e.Why != "" {
				e.Refused = append(e.Refused, i)
			} else {
				e.Applied = append(e.Applied, i)
			}
			continue
		}
		if i.Type != registry.IntentSetPendingMessage {
			e.Refused, e.Why = append(e.Refused, i), "there is no voice session"
			t.a.opts.Logger.Info("a tool's intent has no effect in a text conversation", "intent", string(i.Type),
				"conversation_id", t.conv.ID)
			continue
		}
		e.Applied = append(e.Applied, i)
		t.addEntry(time.Now(), conversation.RoleNotice, i.Message)
	}
	return e
}

// maxKept limits the size of a stored envelope, in bytes.
const maxKept = 8 << 10

// maxKeptExtra limits the stored extras (Message.Extra) of an answer, in bytes.
const maxKeptExtra = 64 << 10

// keptWhole reports whether all extras of an answer can be stored. Otherwise later turns get the calls as text.
func keptWhole(reply textmodel.Reply) bool {
	n := len(reply.Extra)
	for _, c := range reply.Calls {
		n += len(c.Extra)
	}
	return n <= maxKeptExtra
}

func keptExtra(reply textmodel.Reply) json.RawMessage {
	if !keptWhole(reply) {
		return nil
	}
	return reply.Extra
}

// mostKept returns the limit for envelopes: higher if the turn continues after the client's tools.
func (r *Request) mostKept() int {
	if len(r.Tools) > 0 {
		return 8 * maxKept
	}
	return maxKept
}

func objectOr(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

func (t *turn) noteCalls(at time.Time, reply textmodel.Reply) {
	t.messages = append(t.messages, textmodel.Message{
		Role: textmodel.RoleAssistant, Text: reply.Text, Calls: reply.Calls, Extra: reply.Extra})
	entry := t.addEntry(at, conversation.RoleAssistant, reply.Text)
	entry.Extra = keptExtra(reply)
	whole := keptWhole(reply)
	first := t.calls.Count() - len(reply.Calls)
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
		t.messages = append(t.messages, textmodel.Message{Role: textmodel.RoleTool, CallID: asked.ID, Text: string(env.Encode())})
		encoded := env.Kept().Encode()
		kept := conversation.Call{ID: asked.ID, Tool: asked.Name, OK: env.OK, Asked: env.AsksUser()}
		if whole && json.Valid(asked.Args) && len(asked.Args)+len(encoded) <= t.req.mostKept() && env.Meta.Tool != "" {
			kept.Args, kept.Envelope, kept.Extra = asked.Args, encoded, asked.Extra
			if e := env.Error; e != nil && e.ConfirmationRequest != nil && e.ConfirmationRequest.Token != "" {
				kept.Question = store.QuestionName(e.ConfirmationRequest.Token)
			}
		}
		entry.Calls = append(entry.Calls, kept)
	}
}

// undelivered holds the audit records of answers that the model hasn't received. It is safe for concurrent use.
type undelivered struct {
	mu      sync.Mutex // guards records
	records []audit.Record
}

func (u *undelivered) add(r audit.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

// delivered audits the answers that a request has just delivered or, with a reason, that no request will deliver.
func (t *turn) delivered(notDelivered string) {
	t.fresh.mu.Lock()
	all := t.fresh.records
	t.fresh.records = nil
	t.fresh.mu.Unlock()
	for _, r := range all {
		if notDelivered != "" {
			r.Delivered, r.NotDelivered = false, notDelivered
		}
		t.audit(r)
	}
}

// whyUndelivered returns why no request will deliver the last answers.
func (t *turn) whyUndelivered(ctx context.Context) string {
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		return "client_gone"
	case t.waits:
		return "held" // until the client returns the results of its own tools
	}
	return "not_sent"
}

// complete asks the model. Answers to its calls count as delivered once the request is written, or the reply begins.
func (t *turn) complete(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
	if err := ctx.Err(); err != nil {
		return textmodel.Reply{}, err // no client is left
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			t.delivered("")
		}
	}})
	said := 0
	replied := Replied{Began: time.Now()}
	replied.Reply, replied.Err = t.a.opts.Model.Complete(traced, p, func(s string) {
		t.delivered("")
		if replied.First.IsZero() {
			replied.First = time.Now()
		}
		said += len(s)
		delta(s)
	})
	t.spend(p, replied.Reply, said)
	if replied.Err == nil {
		t.delivered("")
	}
	t.report(Step{Replied: &replied})
	return replied.Reply, replied.Err
}

// spend counts an answer's usage, estimated without a report; said is the length of the received text in bytes.
func (t *turn) spend(p textmodel.Prompt, r textmodel.Reply, said int) {
	used := r.Usage
	if used == (textmodel.Usage{}) {
		if used = guess(p, r, said); used != (textmodel.Usage{}) {
			t.guesses++
		}
	}
	t.usage = t.usage.Add(used)
	t.rec.Usage = t.usage
}

func guess(p textmodel.Prompt, r textmodel.Reply, said int) textmodel.Usage {
	talk := cost.Talk{Written: int64(max(said, len(r.Text)) + written(r.Calls))}
	for _, m := range p.Messages {
		talk.Read += int64(len(m.Text) + written(m.Calls))
	}
	for _, tool := range p.Tools {
		talk.Read += int64(len(tool.Name) + len(tool.Description) + len(tool.Parameters))
	}
	tokens := cost.Estimate(cost.Talk{}, talk)
	return textmodel.Usage{Input: tokens.Input, Output: tokens.Output}
}

func written(calls []textmodel.ToolCall) (bytes int) {
	for _, c := range calls {
		bytes += len(c.Name) + len(c.Args)
	}
	return bytes
}
