package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// FieldError is an ErrMessage about one field of the request.
type FieldError struct {
	Field   string // a path in a Chat Completions request, such as tools[0].function.name
	Message string
}

// Error returns Message.
func (e *FieldError) Error() string { return e.Message }

// Unwrap returns ErrMessage.
func (e *FieldError) Unwrap() error { return ErrMessage }

// checkTools rejects client tools named like gateway tools, and calls of these in a client's history.
func (a *Agent) checkTools(req Request) error {
	var own *registry.Snapshot
	if a.opts.Tools != nil {
		own = a.opts.Tools()
	}
	ours := func(name string) bool {
		if own != nil {
			if _, known := own.Tool(name); known {
				return true
			}
		}
		return spec.Reserved(name) != ""
	}
	for i, t := range req.Tools {
		if ours(t.Name) {
			where := fmt.Sprintf("tools[%d].function.name", i)
			return &FieldError{where, fmt.Sprintf("%s is %q, which is a tool of the gateway; use another name.", where, t.Name)}
		}
	}
	for i, m := range req.History {
		for j, c := range m.Calls {
			if ours(c.Name) {
				where := fmt.Sprintf("messages[%d].tool_calls[%d].function.name", i, j)
				return &FieldError{where, fmt.Sprintf(
					"%s is %q, which is a tool of the gateway; the history must not contain its calls.", where, c.Name)}
			}
		}
	}
	return nil
}

// hand records a call that the client must run. handOver sends it once the gateway's own calls of the round are done.
func (t *turn) hand(in calls.Called) {
	name, record, refused := t.calls.ClientCall(time.Now(), in)
	if refused != nil {
		t.do(refused)
		return
	}
	t.handed[name] = true
	t.byClient = append(t.byClient, record)
}

// heldName is the store's name of a turn that waits for the client's tools, heldCall the ID of a call in it.
func heldName(key string) string        { return "held-" + key }
func heldCall(key string, n int) string { return "call_" + key + "_" + strconv.Itoa(n) }

var heldID = regexp.MustCompile(`^call_([A-Z2-7]{26})_(\d{1,3})$`)

// handOver ends the turn with the calls that the client must run. It stores the gateway's own calls for the model.
func (t *turn) handOver(ctx context.Context) *protocol.Error {
	t.waitForAudit()
	key := rand.Text()
	c := conversation.New(heldName(key), t.req.User.String(), t.persona.Name, time.Now())
	c.Append(time.Now(), slices.DeleteFunc(slices.Clone(t.entries),
		func(e conversation.Entry) bool { return e.Role != conversation.RoleAssistant })...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if _, err := t.a.opts.Conversations.Save(ctx, c, 0); err != nil {
		t.a.opts.Logger.Error("saving a turn that waits for the client's tools failed", "conversation_id", t.conv.ID, "error", err)
		return &protocol.Error{Code: protocol.CodeStoreUnavailable,
			Message: "The turn could not be saved, so your tools were not called. Try again soon.", Retryable: true}
	}
	for _, r := range t.byClient {
		t.audit(r)
	}
	t.waits = true
	last := c.Entries[len(c.Entries)-1]
	first := t.calls.Count() - len(last.Calls)
	for i, call := range last.Calls {
		if t.handed[t.callName(first+i+1)] {
			t.emit(&protocol.ToolCall{CallID: heldCall(key, i), Name: call.Tool, Args: objectOr(t.asked[i].Args)})
		}
	}
	return nil
}

const maxHeldLoads = 32

// restore adds the gateway's own calls to the client's history. Those after the user's last message count in the
// budget.
func (t *turn) restore(ctx context.Context) {
	loads := 0
	history := t.req.History
	for i := 0; i < len(history); i++ {
		m := history[i]
		var key []string
		if len(m.Calls) > 0 {
			key = heldID.FindStringSubmatch(m.Calls[0].ID)
		}
		if key == nil || loads == maxHeldLoads {
			t.earlier = append(t.earlier, m)
			continue
		}
		loads++
		c, _, err := t.a.opts.Conversations.Load(ctx, heldName(key[1]))
		if err != nil || !c.OwnedBy(t.req.User) {
			if err != nil && !errors.Is(err, store.ErrUnknown) {
				t.a.opts.Logger.Warn("loading the gateway's own tool calls of a turn failed; the model doesn't see them",
					"conversation_id", t.conv.ID, "error", err)
			}
			t.earlier = append(t.earlier, m)
			continue
		}
		answers := map[string]string{}
		for i+1 < len(history) && history[i+1].Role == textmodel.RoleTool {
			i++
			answers[history[i].CallID] = history[i].Text
		}
		t.earlier = append(t.earlier, heldMessages(key[1], c.Entries, answers)...)
	}
	for i := len(t.earlier) - 1; i >= 0 && !t.req.says() && t.earlier[i].Role != textmodel.RoleUser; i-- {
		for _, c := range t.earlier[i].Calls {
			t.calls.Book().Charge(t.tools, c.Name)
		}
	}
}

func heldMessages(key string, entries []conversation.Entry, answers map[string]string) []textmodel.Message {
	var out []textmodel.Message
	for n, e := range entries {
		m := textmodel.Message{Role: textmodel.RoleAssistant, Text: e.Text, Extra: e.Extra}
		var results []textmodel.Message
		for i, c := range e.Calls {
			m.Calls = append(m.Calls, textmodel.ToolCall{ID: c.ID, Name: c.Tool, Args: objectOr(c.Args), Extra: c.Extra})
			text := string(c.Envelope)
			if answer, is := answers[heldCall(key, i)]; is && n == len(entries)-1 && text == "" {
				text = answer
			} else if text == "" {
				text = fmt.Sprintf(`{"ok":%t,"note":"`+prompts.AnswerForgotten+`"}`, c.OK)
			}
			results = append(results, textmodel.Message{Role: textmodel.RoleTool, CallID: c.ID, Text: text})
		}
		out = append(append(out, m), results...)
	}
	return out
}
