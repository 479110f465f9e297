package chat

import (
	"context"
	"strconv"
	"strings"
	"time"

	"voicegw/conversation"
	"voicegw/internal/mark"
	"voicegw/orchestrator/execute"
	"voicegw/orchestrator/policy"
	"voicegw/registry"
	"voicegw/session/wsclient"
)

// turn is one turn under way. It belongs to the goroutine of Respond, but for emit.
type turn struct {
	// Fixed after newTurn.
	a      *Agent
	req    Request
	conv   *conversation.Conversation
	number int
	tools  *registry.Snapshot // nil: there are none
	mark   mark.Mark          // of the gateway's own words to the model
	emit   Emit               // from any goroutine
	calls  *execute.Calls
	// results come from the executor's goroutines to this one, at most one for each call
	// that runs; it is never closed.
	results chan any
	save    func([]conversation.Entry) error // nil: the client keeps the conversation

	book     policy.Book
	open     []*call // not answered yet, in the order asked for
	count    int     // calls so far
	asked    []ToolCall
	answers  map[string]registry.Envelope // of the calls of this round, by our name
	messages []Message                    // of this turn, for the model
	entries  []conversation.Entry         // of this turn, to be kept
	usage    Usage
	items    int
	toolsOff bool
	nudged   bool
}

// maxResults is more than a turn can have under way.
const maxResults = 256

func (a *Agent) newTurn(req Request, c *conversation.Conversation, emit Emit) *turn {
	t := &turn{a: a, req: req, conv: c, number: c.Turns + 1, mark: mark.For(a.markKey[:], c.ID), results: make(chan any, maxResults)}
	t.emit = safeEmit(emit, t.number)
	if a.opts.Tools != nil {
		t.tools = a.opts.Tools()
	}
	t.book = policy.NewBook(t.tools, a.opts.Rules)
	t.resume()
	t.calls = a.opts.Executor.Begin(execute.Conversation{
		Session:      t.session(),
		Capabilities: t.capabilities(),
		Finished:     func(r execute.Result) { t.results <- r },
		Asked:        func(q execute.Question) { t.results <- q },
		Resolved:     func(execute.Resolution) {}, // answers come with a request of their own
	})
	return t
}

// session is what a tool may know of the conversation.
func (t *turn) session() registry.Session {
	return registry.Session{
		ID: "chat-" + t.conv.ID, UserID: t.req.User.String(), ConversationID: t.conv.ID, Agent: t.a.opts.Name, Vouched: t.req.Vouched, Scopes: t.req.Scopes, Mode: registry.ModeText,
	}
}

// answer carries the turn to its end.
func (t *turn) answer(ctx context.Context) error {
	// What still runs when the client has left is recorded before anybody goes.
	defer t.calls.Wait()
	defer t.calls.End()
	open := t.tellOpen(ctx)
	if t.req.Confirmation != nil {
		if err := t.confirm(ctx); err != nil {
			return err
		}
	} else {
		t.said(t.req.Message)
	}
	t.recall(ctx)
	t.askedBefore(ctx)
	began := time.Now()
	failure := t.rounds(ctx)
	if failure != nil {
		t.emit(failure)
	}
	status := wsclient.DoneCompleted
	if failure != nil || ctx.Err() != nil {
		status = wsclient.DoneFailed
	}
	if err := t.keep(); err != nil {
		t.a.opts.Logger.Error("a conversation could not be kept", "conversation_id", t.conv.ID, "error", err)
		t.emit(&wsclient.Error{Code: wsclient.CodeStoreUnavailable, Message: "What was said could not be kept; the next message will not know of it.", Retryable: true})
		status = wsclient.DoneFailed
	} else {
		t.told(ctx, open)
	}
	t.emit(&wsclient.TurnUsage{Usage: wsclient.Usage{
		InputTokens: t.usage.Input, OutputTokens: t.usage.Output,
		Input:  wsclient.UsageInput{Text: t.usage.Input, CachedText: t.usage.Cached},
		Output: wsclient.UsageOutput{Text: t.usage.Output},
	}})
	t.emit(&wsclient.Done{ConversationID: t.conv.ID, Status: status})
	t.a.opts.Logger.Info("text turn", "conversation_id", t.conv.ID, "turn", t.number, "status", status, "tool_calls", t.count,
		"duration_ms", time.Since(began).Milliseconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output)
	return nil
}

// said notes what the user says in this turn.
func (t *turn) said(text string) {
	t.messages = append(t.messages, Message{Role: RoleUser, Text: text})
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleUser, Text: text, Turn: t.number})
}

// noted notes what the gateway itself tells the model in this turn.
func (t *turn) noted(text string) {
	t.messages = append(t.messages, Message{Role: RoleUser, Text: text, notice: true})
	t.entries = append(t.entries, conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, Text: text, System: true, Turn: t.number})
}

// keep writes the turn into the conversation.
func (t *turn) keep() error {
	if t.save == nil {
		return nil
	}
	return t.save(t.entries)
}

// rounds lets the model answer, and call tools, until it has nothing to call. The
// message says what went wrong; nil if nothing did.
func (t *turn) rounds(ctx context.Context) *wsclient.Error {
	most := t.book.Budget().Total + 2 // so many rounds with a call each, an answer, a nudge
	for round := range most {
		p := t.prompt()
		p.ToolsOff = t.toolsOff || round == most-1
		t.items++
		item := "text_" + strconv.Itoa(t.number) + "_" + strconv.Itoa(t.items)
		began, said := time.Now(), strings.Builder{}
		reply, err := t.a.opts.Model.Complete(ctx, p, func(s string) {
			said.WriteString(s)
			t.emit(&wsclient.TextDelta{ItemID: item, Text: s})
		})
		if err != nil {
			if ctx.Err() != nil && strings.TrimSpace(said.String()) != "" { // it was read
				t.entries = append(t.entries, conversation.Entry{At: began, Side: conversation.SideText, Role: conversation.RoleAssistant,
					Text: said.String(), Turn: t.number, Interrupted: true})
			}
			return t.modelFailed(ctx, err)
		}
		t.usage = t.usage.Add(reply.Usage)
		if reply.Text != "" {
			t.emit(&wsclient.TextDone{ItemID: item, Text: reply.Text, Cut: reply.Cut, Refused: reply.Refused})
		}
		at := time.Now()
		if len(reply.Calls) == 0 {
			if done, failure := t.answered(at, reply); done {
				return failure
			}
			continue
		}
		t.runCalls(ctx, reply.Calls)
		t.noteCalls(at, reply)
		if ctx.Err() != nil {
			return t.modelFailed(ctx, ctx.Err())
		}
	}
	return noAnswer()
}

// noAnswer ends a turn without an answer.
func noAnswer() *wsclient.Error {
	return &wsclient.Error{Code: wsclient.CodeNoAnswer, Message: "The model gave no answer; say it again, please.", Retryable: true}
}

// answered takes a reply without calls. An empty one is asked for once more.
func (t *turn) answered(at time.Time, reply Reply) (done bool, failure *wsclient.Error) {
	switch {
	case strings.TrimSpace(reply.Text) != "":
		t.entries = append(t.entries, conversation.Entry{At: at, Side: conversation.SideText, Role: conversation.RoleAssistant, Text: reply.Text, Turn: t.number})
		t.messages = append(t.messages, Message{Role: RoleAssistant, Text: reply.Text})
		return true, nil
	case reply.Refused:
		return true, refused()
	case t.nudged:
		return true, noAnswer()
	default:
		t.nudged = true
		t.messages = append(t.messages, Message{Role: RoleUser, Text: policy.NudgeNotice, notice: true})
		return false, nil
	}
}
