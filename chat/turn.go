package chat

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"voicegw/internal/user"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// turn is one turn in progress. Except for emit, only the goroutine of serve may use it.
type turn struct {
	// Fixed after newTurn.
	a       *Agent
	m       *message
	req     Request
	conv    *conversation.Conversation
	number  int
	persona *Persona           // who answers, as it was when that began
	tools   *registry.Snapshot // the persona's; nil if there are no tools
	mark    prompts.Mark       // the mark before the gateway's own words to the model
	emit    Emit               // may be called concurrently
	runs    *execute.Runner
	// results carries results from the executor's goroutines to this one, at most one for each
	// running call. It is never closed.
	results chan calls.Input
	save    func([]conversation.Entry) error // nil if the client keeps the conversation
	rec     *record                          // how far this and earlier attempts at the message have got
	resumed bool                             // there were earlier attempts

	fresh     undelivered // answers that the next request delivers to the model
	unwritten audit.Unwritten

	earlier  []Message       // the client's history, as the model gets it
	handed   map[string]bool // calls that the client runs, by the gateway's name
	calls    calls.Calls
	asked    []ToolCall
	answers  map[string]registry.Envelope // answers to calls, by the gateway's name
	messages []Message                    // this turn's messages for the model
	entries  []conversation.Entry         // this turn's entries for the conversation
	usage    Usage
	began    time.Time
	first    time.Duration // until the first piece of text; zero before
	billed   Usage         // of usage: by earlier attempts
	guesses  int64         // answers of this attempt whose usage is a guess
	items    int
	toolsOff bool
	again    bool       // the intents that are applied were applied by an earlier attempt
	next     *successor // who goes on after the calls of this round; nil for the persona itself
	nudged   bool
	settle   []func()        // called once the conversation is stored
	byClient []audit.Record  // records of calls that the client must run, until they are handed over
	waits    bool            // calls were handed over: the next request brings their answers
	made     map[string]int  // how often each call was made, by its tool and arguments
	anew     map[string]bool // calls, by the gateway's name, that the next attempt makes again
	cost     cost.Amount     // of this attempt; known at its end
	follower Followed
}

// maxResults exceeds what the calls that a turn can have under way report, with the calls that their tools make.
const maxResults = 256

// newTurn returns the turn of a message, or continues the one that rec has begun.
func (a *Agent) newTurn(req Request, c *conversation.Conversation, m *message, rec *record) *turn {
	t := &turn{a: a, m: m, req: req, conv: c, number: c.Turns + 1, mark: prompts.MarkFor(a.markKey[:], c.ID), results: make(chan calls.Input, maxResults),
		rec: rec, resumed: rec.Turn > 0, usage: rec.Usage, billed: rec.Usage, made: map[string]int{}, answers: map[string]registry.Envelope{}, handed: map[string]bool{}, anew: map[string]bool{}}
	if kept := rec.keptIn(c); kept > 0 {
		if kept == c.Turns {
			t.number = kept
		}
		// What is stored of the message is replaced.
		before := *c
		before.Entries = slices.DeleteFunc(slices.Clone(c.Entries), func(e conversation.Entry) bool { return e.Message == rec.Name })
		t.conv = &before
	}
	rec.Turn = t.number
	t.emit = safeEmit(m.add, t.number)
	t.persona = a.persona(req.Agent, c.Agent)
	t.tools = t.toolsOf(t.persona)
	t.calls = calls.New(t.tools, &calls.Rules{Tools: t.persona.rules(a.opts.Rules), Prefix: t.callPrefix()})
	t.calls.Book().As(t.persona.named())
	t.calls.Book().In(user.ZoneOr(t.req.TimeZone, nil))
	t.resume()
	t.follow()
	t.runs = a.opts.Executor.Begin(t.conversation())
	return t
}

// used bills what this attempt has used, and returns what the turn has used. What it has cost is for a
// client that may inspect; it is the cost of this attempt.
func (t *turn) used() protocol.Usage {
	u := protocol.Usage{
		InputTokens: t.usage.Input, OutputTokens: t.usage.Output, Estimated: t.guesses > 0,
		Input:  protocol.UsageInput{Text: t.usage.Input, CachedText: t.usage.Cached},
		Output: protocol.UsageOutput{Text: t.usage.Output},
	}
	if t.a.opts.Bill == nil {
		return u
	}
	t.cost = t.a.opts.Bill(Bill{ConversationID: t.conv.ID, Turn: t.number, User: t.req.User, Key: t.req.Key, Agent: t.persona.Name, AgentVersion: t.persona.Version, Usage: t.usage.Minus(t.billed), Estimated: t.guesses})
	if t.req.Inspect {
		u.Cost = &protocol.Cost{USDMicros: int64(t.cost.Micros), Unpriced: t.cost.Unpriced}
	}
	return u
}

// session describes the conversation to a tool.
func (t *turn) session() registry.Session {
	return registry.Session{
		ID: "chat-" + t.conv.ID, UserID: t.req.User.String(), ConversationID: t.conv.ID, Agent: t.persona.Name, Vouched: t.req.Vouched, Scopes: t.req.Scopes, Mode: spec.ModeText, TimeZone: t.req.TimeZone,
	}
}

// answer runs the turn to its end, and returns the last message of the answer.
func (t *turn) answer(ctx context.Context) (protocol.ServerMessage, error) {
	// Calls that still run after the client has left are recorded before answer returns.
	defer t.runs.Wait()
	defer t.runs.End()
	if t.rec.Begun {
		t.started()
	}
	t.rec.replay(t.m, t.req)
	open, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	t.began = time.Now()
	failure := t.rounds(ctx)
	t.undeliver(ctx)
	if failure != nil {
		t.emit(failure)
	}
	status := protocol.DoneCompleted
	if failure != nil || ctx.Err() != nil {
		status = protocol.DoneFailed
	}
	used := t.used()
	if err := t.keep(); err != nil {
		t.a.opts.Logger.Error("a conversation could not be kept", "conversation_id", t.conv.ID, "error", err)
		t.emit(&protocol.Error{Code: protocol.CodeStoreUnavailable, Message: "What was said could not be kept; the next message will not know of it.", Retryable: true})
		status = protocol.DoneFailed
	} else {
		t.told(ctx, open.approvals)
		t.toldJobs(ctx, open.jobs)
		for _, settle := range t.settle {
			settle()
		}
	}
	t.over(status, failure)
	t.emit(&protocol.TurnUsage{Usage: used})
	done := &protocol.Done{ConversationID: t.conv.ID, Status: status}
	protocol.SetTurn(done, t.number)
	t.rec.Done, t.rec.Heard = status == protocol.DoneCompleted, t.m.watched()
	t.rec.tell(append(t.m.soFar(), done), t.anew)
	if err := t.a.write(ctx, t.m.id, t.rec); err != nil {
		t.a.opts.Logger.Error("what became of a message could not be kept; only this process knows it", "conversation_id", t.conv.ID, "error", err)
	}
	t.a.opts.Logger.Info("text turn", "conversation_id", t.conv.ID, "turn", t.number, "status", status, "tool_calls", t.calls.Count(),
		"duration_ms", time.Since(t.began).Milliseconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output)
	return done, nil
}

// owed is what the conversation is told in this turn although it began earlier.
type owed struct {
	approvals []store.Approval
	jobs      []store.Job
}

// begin collects what the model is told before it answers: earlier approvals with an unknown
// outcome, long work that has ended, and what the user says or has approved.
func (t *turn) begin(ctx context.Context) (open owed, err error) {
	open = owed{t.openApprovals(ctx), t.owedJobs(ctx)}
	if t.rec.Begun {
		for _, e := range t.rec.Lead {
			if e.System {
				t.noted(e.Text)
			} else {
				t.entries = append(t.entries, e)
			}
		}
		untold := func(reference string) bool {
			return !t.conv.Told(reference) && !conversation.Told(t.rec.Lead, reference)
		}
		open.approvals = slices.DeleteFunc(open.approvals, func(a store.Approval) bool { return untold(a.Reference) })
		open.jobs = slices.DeleteFunc(open.jobs, func(j store.Job) bool { return untold(j.ID) })
	} else {
		t.tellOwed(open)
		t.tellUnapproved(ctx)
		if t.req.Confirmation == nil {
			t.started()
		} else if err := t.confirm(ctx); err != nil {
			return owed{}, err
		}
		t.rec.Begun, t.rec.Lead = true, slices.Clone(t.entries)
	}
	t.restore(ctx)
	if t.req.Confirmation == nil && t.req.says() {
		t.said(t.req.Message, t.req.Parts)
	}
	t.recall(ctx)
	t.askedBefore(ctx)
	return open, nil
}

// tellOwed tells the model what the conversation has not been told yet.
func (t *turn) tellOwed(open owed) {
	for _, a := range open.approvals {
		if !t.conv.Told(a.Reference) {
			t.noted(t.approvalNotice(a))
		}
	}
	for _, j := range open.jobs {
		if !t.conv.Told(j.ID) {
			t.noted(t.jobNotice(j))
		}
	}
}

// over tells the observer, and whoever follows, that the attempt has ended.
func (t *turn) over(status string, failure *protocol.Error) {
	e := TurnOver{Status: status, Took: time.Since(t.began), First: t.first, Usage: t.usage.Minus(t.billed)}
	if failure != nil {
		e.Code = failure.Code
	}
	if t.a.opts.Observe != nil {
		t.a.opts.Observe(e)
	}
	t.tellFollower(Step{Over: &e, Cost: t.cost})
}

// started tells the client, before anything else, that the turn has begun. From now on it cannot
// be refused.
func (t *turn) started() { t.emit(&protocol.TurnStarted{ConversationID: t.conv.ID}) }

// said adds what the user says in this turn. Later turns get a word in place of an image.
func (t *turn) said(text string, parts []Part) {
	t.messages = append(t.messages, Message{Role: RoleUser, Text: text, Parts: parts})
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleUser, Text: inWords(text, parts), Turn: t.number})
}

// noted adds what the gateway itself tells the model in this turn.
func (t *turn) noted(text string) {
	t.messages = append(t.messages, Message{Role: RoleUser, Text: text, notice: true})
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, Text: text, System: true, Turn: t.number})
}

// keep stores the turn in the conversation, with what it has cost.
func (t *turn) keep() error {
	t.waitForAudit()
	if t.save == nil {
		return nil
	}
	for i := range t.entries {
		t.entries[i].Message = t.rec.Name
	}
	if len(t.entries) > 0 {
		e := &t.entries[0]
		e.Spent = conversation.Spent{CostUSDMicros: int64(t.cost.Micros), Unpriced: t.cost.Unpriced}
		e.LatencyMS = t.first.Milliseconds()
	}
	return t.save(t.entries)
}

// rounds lets the model answer and call tools until it calls no more. It returns the error for
// the client; nil on success.
func (t *turn) rounds(ctx context.Context) *protocol.Error {
	most := t.calls.Book().Budget().Total + 2 // a round for each call, an answer, a nudge
	before := len(t.rec.Rounds)               // rounds of earlier attempts
	for round := range most {
		if round < before {
			if done, failure := t.goOn(ctx, round); done {
				return failure
			}
			continue
		}
		if ctx.Err() != nil { // it ended while an approved action ran
			return t.modelFailed(ctx, ctx.Err())
		}
		p := t.prompt()
		p.ToolsOff = p.ToolsOff || t.toolsOff || round == most-1
		t.items++
		item := "text_" + strconv.Itoa(t.number) + "_" + strconv.Itoa(t.items)
		began, said := time.Now(), strings.Builder{}
		reply, err := t.complete(ctx, p, func(s string) {
			said.WriteString(s)
			if t.first == 0 {
				t.first = time.Since(t.began)
			}
			t.emit(&protocol.TextDelta{ItemID: item, Text: s})
		})
		if err != nil {
			if strings.TrimSpace(said.String()) != "" { // the client has seen it
				left := errors.Is(context.Cause(ctx), errLeft)
				t.entries = append(t.entries, conversation.Entry{At: began, Side: conversation.SideText, Role: conversation.RoleAssistant,
					Text: said.String(), Turn: t.number, Interrupted: left, Broken: !left})
			}
			return t.modelFailed(ctx, err)
		}
		if reply.Text != "" {
			t.emit(&protocol.TextDone{ItemID: item, Text: reply.Text, Cut: reply.Cut, Refused: reply.Refused})
		}
		at := time.Now()
		if len(reply.Calls) == 0 {
			if done, failure := t.answered(at, reply); done {
				return failure
			}
			continue
		}
		t.rec.add(at, reply)
		if done, failure := t.goOn(ctx, len(t.rec.Rounds)-1); done {
			return failure
		}
	}
	return noAnswer()
}

// announce stores which calls are about to run, if any of them changes something. After a crash,
// the next attempt knows these calls and does not ask the model for others.
func (t *turn) announce(ctx context.Context, r *round) *protocol.Error {
	if !slices.ContainsFunc(r.Calls, func(c calledOnce) bool { return c.Envelope == nil && t.writes(c.Name) }) {
		return nil
	}
	t.waitForAudit()
	t.rec.tell(t.m.soFar(), nil)
	err := t.a.write(ctx, t.m.id, t.rec)
	if err == nil {
		return nil
	}
	t.a.opts.Logger.Error("it could not be recorded what a message is about to do, and nothing was done", "conversation_id", t.conv.ID, "error", err)
	return &protocol.Error{Code: protocol.CodeStoreUnavailable, Message: "It could not be recorded what is to be done, so nothing was done; try again soon.", Retryable: true}
}

// goOn makes the calls of a round that have no answer yet, and adds them all to the turn. done
// reports whether the turn is over.
func (t *turn) goOn(ctx context.Context, n int) (done bool, failure *protocol.Error) {
	r := &t.rec.Rounds[n]
	t.items = max(t.items, n+1)
	reply := Reply{Text: r.Text, Calls: r.asked(), Extra: r.Extra}
	if len(r.Calls) == 0 {
		return t.answered(r.At, reply)
	}
	if failure := t.announce(ctx, r); failure != nil {
		return true, failure
	}
	t.runCalls(ctx, r)
	t.noteCalls(r.At, reply)
	t.become()
	if ctx.Err() != nil {
		return true, t.modelFailed(ctx, ctx.Err())
	}
	if len(t.handed) > 0 {
		return true, t.handOver(ctx)
	}
	return false, nil
}

// noAnswer is the error of a turn without an answer.
func noAnswer() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeNoAnswer, Message: "The model gave no answer; say it again, please.", Retryable: true}
}

// answered takes a reply without calls. If it is empty, the model is asked once more.
func (t *turn) answered(at time.Time, reply Reply) (done bool, failure *protocol.Error) {
	switch {
	case strings.TrimSpace(reply.Text) != "":
		if n := len(t.rec.Rounds); n == 0 || len(t.rec.Rounds[n-1].Calls) > 0 {
			t.rec.add(at, reply)
		}
		t.entries = append(t.entries, conversation.Entry{At: at, Side: conversation.SideText, Role: conversation.RoleAssistant, Text: reply.Text, Turn: t.number, Extra: keptExtra(reply)})
		t.messages = append(t.messages, Message{Role: RoleAssistant, Text: reply.Text, Extra: reply.Extra})
		return true, nil
	case reply.Refused:
		return true, refused()
	case t.nudged:
		return true, noAnswer()
	default:
		t.nudged = true
		again := prompts.NudgeNotice
		if t.toolsOff {
			again += " " + prompts.WithoutTools
		}
		t.messages = append(t.messages, Message{Role: RoleUser, Text: again, notice: true})
		return false, nil
	}
}
