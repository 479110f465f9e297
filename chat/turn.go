package chat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// turn is one turn in progress. Except for emit, only the goroutine of serve may use it.
type turn struct {
	// Fixed after newTurn.
	a       *Agent
	m       *message
	req     Request
	conv    *conversation.Conversation
	number  int
	persona *Persona           // as it was when it began to answer
	tools   *registry.Snapshot // of the persona; nil without tools
	mark    prompts.Mark       // precedes the gateway's own messages to the model
	emit    Emit               // safe for concurrent use
	runs    *execute.Runner
	// results carries results from the executor's goroutines, at most one for each running call. It is never closed.
	results chan calls.Input
	save    func([]conversation.Entry) error // nil if the client keeps the conversation
	rec     *record                          // the progress of all attempts at the message
	resumed bool                             // there were earlier attempts

	fresh     undelivered // answers that the next request delivers to the model
	unwritten audit.Unwritten

	earlier  []textmodel.Message // the client's history as the model gets it
	handed   map[string]bool     // calls that the client runs, by the gateway's name
	calls    calls.Calls
	asked    []textmodel.ToolCall
	answers  map[string]registry.Envelope // answers to calls, by the gateway's name
	messages []textmodel.Message          // this turn's messages for the model
	entries  []conversation.Entry         // this turn's entries for the conversation
	usage    textmodel.Usage
	began    time.Time
	first    time.Duration   // until the first text; zero before
	billed   textmodel.Usage // the part of usage from earlier attempts
	guesses  int64           // answers of this attempt with estimated usage
	items    int
	attempt
	again    bool            // the current intents were applied by an earlier attempt
	next     *successor      // takes over after the calls of this round; nil for no change
	settle   []func()        // called once the conversation is stored
	byClient []audit.Record  // of calls that the client must run, until handed over
	waits    bool            // calls were handed over: the next request has their results
	made     map[string]int  // calls made, by tool and arguments
	rerun    map[string]bool // calls that the next attempt repeats, by the gateway's name
	cost     cost.Amount     // of this attempt; set at its end
	follower Followed
}

// attempt is how far an attempt at a message is.
type attempt struct {
	toolsOff  bool
	nudged    bool
	corrected bool // the model was asked to correct a claim
	restarted bool // a check stopped an answer, and the model was asked for another one
	replaying bool // an answer of an earlier attempt is being taken again
}

// maxResults exceeds the results of all calls that a turn can run at once, including nested calls.
const maxResults = 256

func (a *Agent) newTurn(req Request, c *conversation.Conversation, m *message, rec *record) *turn {
	t := &turn{a: a, m: m, req: req, conv: c, number: c.Turns + 1, mark: prompts.MarkFor(a.markKey[:], c.ID),
		results: make(chan calls.Input, maxResults),
		rec:     rec, resumed: rec.Turn > 0, usage: rec.Usage, billed: rec.Usage, made: map[string]int{},
		answers: map[string]registry.Envelope{}, handed: map[string]bool{}, rerun: map[string]bool{}}
	if kept := rec.keptIn(c); kept > 0 {
		if kept == c.Turns {
			t.number = kept
		}
		// The stored entries of the message are replaced.
		before := *c
		before.Entries = slices.DeleteFunc(slices.Clone(c.Entries), func(e conversation.Entry) bool { return e.Message == rec.Name })
		t.conv = &before
	}
	rec.Turn = t.number
	t.emit = safeEmit(m.add, t.number)
	t.persona = a.persona(req.Agent, c.Agent)
	t.tools = t.toolsOf(t.persona, nil)
	t.calls = calls.New(t.tools, &calls.Rules{Tools: t.persona.rules(a.opts.Rules), Prefix: callPrefix(t.number), Claims: a.opts.Claims})
	t.calls.Book().SetAgent(t.persona.named())
	t.calls.Book().SetZone(user.ZoneOr(t.req.TimeZone, nil))
	t.resume()
	t.follow()
	t.runs = a.opts.Executor.Begin(t.conversation())
	return t
}

// used bills this attempt and returns the turn's usage. Only clients that may inspect get the attempt's cost.
func (t *turn) used() protocol.Usage {
	u := protocol.Usage{
		InputTokens: t.usage.Input, OutputTokens: t.usage.Output, Estimated: t.guesses > 0,
		Input:  protocol.UsageInput{Text: t.usage.Input, CachedText: t.usage.Cached},
		Output: protocol.UsageOutput{Text: t.usage.Output},
	}
	if t.a.opts.Bill == nil {
		return u
	}
	t.cost = t.a.opts.Bill(Bill{ConversationID: t.conv.ID, Turn: t.number, User: t.req.User, Key: t.req.Key,
		Agent: t.persona.Name, AgentVersion: t.persona.Version, Usage: t.usage.Minus(t.billed), Estimated: t.guesses})
	if t.req.Inspect {
		u.Cost = &protocol.Cost{USDMicros: int64(t.cost.Micros), Unpriced: t.cost.Unpriced}
	}
	return u
}

func (t *turn) session() registry.Session {
	return registry.Session{
		ID: "chat-" + t.conv.ID, UserID: t.req.User.String(), ConversationID: t.conv.ID, Agent: t.persona.Name,
		Vouched: t.req.Vouched, Scopes: t.req.Scopes, Mode: spec.ModeText, TimeZone: t.req.TimeZone,
	}
}

func (t *turn) answer(ctx context.Context) (protocol.ServerMessage, error) {
	// Calls that outlive the client are recorded before answer returns.
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
	t.delivered(t.whyUndelivered(ctx))
	if failure != nil {
		t.emit(failure)
	}
	status := protocol.DoneCompleted
	if failure != nil || ctx.Err() != nil {
		status = protocol.DoneFailed
	}
	used := t.used()
	if err := t.keep(); err != nil {
		t.a.opts.Logger.Error("saving a conversation failed", "conversation_id", t.conv.ID, "error", err)
		t.emit(&protocol.Error{Code: protocol.CodeStoreUnavailable,
			Message: "This turn could not be saved. The next message won't know about it.", Retryable: true})
		status = protocol.DoneFailed
	} else {
		t.told(ctx, open)
		for _, settle := range t.settle {
			settle()
		}
	}
	t.over(status, failure)
	t.emit(&protocol.TurnUsage{Usage: used})
	done := &protocol.Done{ConversationID: t.conv.ID, Status: status}
	protocol.SetTurn(done, t.number)
	t.rec.Done, t.rec.Heard = status == protocol.DoneCompleted, t.m.watched()
	t.rec.keepEvents(append(t.m.soFar(), done), t.rerun)
	if err := t.a.write(ctx, t.m.id, t.rec); err != nil {
		t.a.opts.Logger.Error("saving the record of a message failed; only this process has it", "conversation_id", t.conv.ID, "error", err)
	}
	t.a.opts.Logger.Info("text turn", "conversation_id", t.conv.ID, "turn", t.number, "status", status, "tool_calls", t.calls.Count(),
		"duration_ms", time.Since(t.began).Milliseconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output)
	return done, nil
}

func (t *turn) begin(ctx context.Context) (open []execute.Owed, err error) {
	open = t.owed(ctx)
	if t.rec.Begun {
		for _, e := range t.rec.Lead {
			if e.System {
				t.noted(e.Text)
			} else {
				t.entries = append(t.entries, e)
			}
		}
		open = slices.DeleteFunc(open, func(o execute.Owed) bool {
			return !t.conv.HasOutcome(o.Reference) && !conversation.HasOutcome(t.rec.Lead, o.Reference)
		})
	} else {
		for _, o := range open {
			if !t.conv.HasOutcome(o.Reference) {
				t.noted(o.Notice)
			}
		}
		t.tellUnapproved(ctx)
		if t.req.Confirmation == nil {
			t.started()
		} else if err := t.confirm(ctx); err != nil {
			return nil, err
		}
		t.rec.Begun, t.rec.Lead = true, slices.Clone(t.entries)
	}
	t.restore(ctx)
	if t.req.Confirmation == nil && t.req.says() {
		t.said(t.req.Message, t.req.Parts)
	}
	t.recall(ctx)
	t.askedBefore(ctx)
	t.rememberEffects(ctx)
	return open, nil
}

func (t *turn) over(status string, failure *protocol.Error) {
	e := TurnOver{Status: status, Took: time.Since(t.began), First: t.first, Usage: t.usage.Minus(t.billed)}
	if failure != nil {
		e.Code = failure.Code
	}
	if t.a.opts.Observe != nil {
		t.a.opts.Observe(e)
	}
	t.report(Step{Over: &e, Cost: t.cost})
}

// started notifies the client that the turn has begun. It must come first; after it the turn can't be refused.
func (t *turn) started() { t.emit(&protocol.TurnStarted{ConversationID: t.conv.ID}) }

// said adds the user's message of this turn. The conversation stores a word instead of an image.
func (t *turn) said(text string, parts []textmodel.Part) {
	t.messages = append(t.messages, textmodel.Message{Role: textmodel.RoleUser, Text: text, Parts: parts})
	t.addEntry(time.Now(), conversation.RoleUser, textmodel.InWords(text, parts))
}

func (t *turn) noted(text string) {
	t.tell(text)
	t.addEntry(time.Now(), conversation.RoleNotice, text).System = true
}

// tell adds the gateway's own words to this turn's messages for the model.
func (t *turn) tell(text string) {
	t.messages = append(t.messages, textmodel.Message{Role: textmodel.RoleUser, Text: text, Notice: true})
}

// addEntry adds an entry for the conversation; the result is valid until the next one.
func (t *turn) addEntry(at time.Time, role conversation.Role, text string) *conversation.Entry {
	t.entries = append(t.entries, conversation.Entry{At: at, Side: conversation.SideText, Role: role, Text: text, Turn: t.number})
	return &t.entries[len(t.entries)-1]
}

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

// rounds lets the model answer and call tools until it makes no more calls.
func (t *turn) rounds(ctx context.Context) *protocol.Error {
	most := t.calls.Book().Budget().Total + 2 // one for each call, an answer, and a nudge
	before := len(t.rec.Rounds)
	for round := 0; round < most; round++ {
		if t.replaying = round < before; t.replaying {
			if done, failure := t.finishRound(ctx, round); done {
				return failure
			}
			continue
		}
		if ctx.Err() != nil { // ended while an approved action ran
			return t.modelFailed(ctx, ctx.Err())
		}
		p := t.prompt()
		p.ToolsOff = p.ToolsOff || t.toolsOff || round == most-1
		reply, again, failure := checkedTurn{t}.ask(ctx, p)
		if failure != nil {
			return failure
		}
		if again {
			most++
			continue
		}
		at := time.Now()
		if len(reply.Calls) == 0 {
			corrected := t.corrected
			if done, failure := t.answered(at, reply); done {
				return failure
			}
			if t.corrected && !corrected {
				most++
			}
			continue
		}
		t.rec.add(at, reply)
		if done, failure := t.finishRound(ctx, len(t.rec.Rounds)-1); done {
			return failure
		}
	}
	return noAnswer()
}

// ask lets the model answer or call tools once, and shows its words. again means that a check has stopped the answer and
// the model may try again.
func (t checkedTurn) ask(ctx context.Context, p textmodel.Prompt) (reply textmodel.Reply, again bool, failure *protocol.Error) {
	t.items++
	item := t.item()
	began, said := time.Now(), strings.Builder{}
	show := func(s string) {
		said.WriteString(s)
		if t.first == 0 {
			t.first = time.Since(t.began)
		}
		t.emit(&protocol.TextDelta{ItemID: item, Text: s})
	}
	reply, stop, err := t.reply(ctx, p, show)
	if err != nil {
		t.brokenOff(ctx, began, said.String())
		return reply, false, t.modelFailed(ctx, err)
	}
	if stop != nil {
		if again, failure = t.stopped(stop, &reply, show); again || failure != nil {
			return reply, again, failure
		}
	}
	if reply.Text != "" {
		t.emit(&protocol.TextDone{ItemID: item, Text: reply.Text, Cut: reply.Cut, Refused: reply.Refused})
	}
	return reply, false, nil
}

// brokenOff keeps the part of an incomplete answer that was shown to the client.
func (t checkedTurn) brokenOff(ctx context.Context, began time.Time, shown string) {
	if strings.TrimSpace(shown) == "" {
		return
	}
	e := t.addEntry(began, conversation.RoleAssistant, shown)
	e.Interrupted = errors.Is(context.Cause(ctx), errLeft)
	e.Broken = !e.Interrupted
}

// announce stores calls that are about to run, if any has side effects, so that an attempt after a crash repeats them.
func (t *turn) announce(ctx context.Context, r *round) *protocol.Error {
	if !slices.ContainsFunc(r.Calls, func(c calledOnce) bool { return c.Envelope == nil && t.writes(c.Name) }) {
		return nil
	}
	t.waitForAudit()
	t.rec.keepEvents(t.m.soFar(), nil)
	err := t.a.write(ctx, t.m.id, t.rec)
	if err == nil {
		return nil
	}
	t.a.opts.Logger.Error("recording a message's calls failed, so none was made", "conversation_id", t.conv.ID, "error", err)
	return &protocol.Error{Code: protocol.CodeStoreUnavailable,
		Message: "The planned actions could not be recorded, so none was taken. Try again soon.", Retryable: true}
}

// finishRound makes the open calls of a round and adds it to the turn. done: the turn is over.
func (t *turn) finishRound(ctx context.Context, n int) (done bool, failure *protocol.Error) {
	r := &t.rec.Rounds[n]
	t.items = max(t.items, n+1)
	reply := textmodel.Reply{Text: r.Text, Calls: r.asked(), Extra: r.Extra}
	if len(r.Calls) == 0 {
		return t.answered(r.At, reply)
	}
	if failure := t.announce(ctx, r); failure != nil {
		return true, failure
	}
	t.runCalls(ctx, r)
	t.noteCalls(r.At, reply)
	t.switchPersona()
	if ctx.Err() != nil {
		return true, t.modelFailed(ctx, ctx.Err())
	}
	if len(t.handed) > 0 {
		return true, t.handOver(ctx)
	}
	return false, nil
}

func noAnswer() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeNoAnswer, Message: "The model gave no answer. Please try again.", Retryable: true}
}

// answered handles a reply without calls. If it is empty, the model is asked once more.
func (t *turn) answered(at time.Time, reply textmodel.Reply) (done bool, failure *protocol.Error) {
	switch {
	case strings.TrimSpace(reply.Text) != "":
		if !t.replaying {
			t.rec.add(at, reply)
		}
		t.addEntry(at, conversation.RoleAssistant, reply.Text).Extra = keptExtra(reply)
		t.messages = append(t.messages, textmodel.Message{Role: textmodel.RoleAssistant, Text: reply.Text, Extra: reply.Extra})
		return !t.corrects(reply.Text), nil
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
		t.tell(again)
		return false, nil
	}
}

// modelFailed returns the client's error for a failure of the model; nil if the client has left.
func (t *turn) modelFailed(ctx context.Context, err error) *protocol.Error {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errTurnTime):
			return noAnswer()
		case errors.Is(cause, errDraining):
			return &protocol.Error{Code: protocol.CodeDraining,
				Message: "The gateway is shutting down and could not finish this answer. Send the message again, and another " +
					"gateway will continue it.", Retryable: true}
		}
		return nil
	}
	failed := &textmodel.Error{Kind: transport.KindRetry}
	_ = errors.As(err, &failed) // otherwise unknown and possibly temporary
	row := failed.Kind.Failure()
	t.a.opts.Logger.Log(ctx, row.Level, "the chat model failed", "conversation_id", t.conv.ID, "kind", row.Name, "error", err)
	// Provider messages may contain keys, accounts and addresses, so they go only to the log.
	failure := protocol.Error{Code: row.Code, Message: row.Words, Retryable: row.Later, RetryAfterMS: failed.RetryAfter.Milliseconds()}
	if name := t.req.settingOf(failed); name != "" {
		failure = protocol.Error{Code: protocol.CodeSettingRefused, Message: "The model rejects the value of " + name +
			" in the request.", Ref: name}
	}
	if failed.Kind == transport.KindInvalid && failed.Err != nil && t.req.hasImages() &&
		strings.Contains(strings.ToLower(failed.Err.Error()), "image") {
		failure = protocol.Error{Code: protocol.CodeSettingRefused,
			Message: "The model's provider rejected an image in the request, or could not load it from its URL.", Ref: "messages"}
	}
	return &failure
}

// settingOf returns the client's setting that the model rejected, or an empty string.
func (r *Request) settingOf(failed *textmodel.Error) string {
	if failed.Kind != transport.KindInvalid {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		root, _, _ := strings.Cut(failed.Param, ".")
		if root == name || failed.Param == "" && strings.Contains(failed.Err.Error(), name) {
			return name
		}
	}
	return ""
}

func refused() *protocol.Error {
	return &protocol.Error{Code: protocol.CodeRefused, Message: "The model refused to answer. Rephrase the message."}
}
