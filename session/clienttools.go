package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/textutil"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
)

// maxDeclared bounds the names, descriptions and schemas of declared tools, in bytes.
const maxDeclared = 32 << 10

func (g *startup) declare() *Cause {
	m := g.m
	list := g.start.Tools
	g.start.Tools = nil // the snapshot has them
	if len(list) == 0 {
		return nil
	}
	switch most := m.options().Limits.ClientTools; {
	case most < 0:
		return refusal(protocol.CloseBadProtocol, protocol.CodeNotAvailable,
			"This gateway does not let clients declare tools; start without the field tools.")
	case len(list) > most:
		return wrongField("tools", "has %d tools; this gateway takes at most %d.", len(list), most)
	}
	size := 0
	var all []*registry.Tool
	for i, d := range list {
		if size += len(d.Name) + len(d.Description) + len(d.Schema); size > maxDeclared {
			return wrongField("tools", "has more than %d KiB of names, descriptions and schemas.", maxDeclared>>10)
		}
		t, cause := declared(i, d)
		if cause != nil {
			return cause
		}
		all = append(all, t)
	}
	tools, err := g.all.With(all)
	var same *registry.SameName
	if errors.As(err, &same) {
		i := slices.IndexFunc(list, func(d protocol.ClientTool) bool { return d.Name == same.Name })
		return wrongField(fmt.Sprintf("tools[%d].name", i),
			"is %q, and the tool %q is there already; give yours another name.", same.Name, clip(same.Other))
	}
	g.all, g.declares = tools, true
	return nil
}

func declared(i int, d protocol.ClientTool) (*registry.Tool, *Cause) {
	what := registry.Declared{Name: d.Name, Description: d.Description, Parameters: d.Schema, ReadOnly: d.ReadOnly, TimeoutMS: d.TimeoutMS}
	t, problems := registry.Declare(what)
	if len(problems) > 0 {
		return nil, undeclared(i, problems[0].Path, problems[0].Message)
	}
	return t, nil
}

// undeclared refuses a declaration because of the part at path.
func undeclared(i int, path, message string) *Cause {
	field := fmt.Sprintf("tools[%d]%s", i, strings.ReplaceAll(path, "/", "."))
	return wrongField(clip(field), "is not accepted: %s", textutil.Shorten(message, 400))
}

// clientCalls are the calls that the client runs. It is a capability of tools.
type clientCalls struct {
	s *session

	mu   sync.Mutex // taken after session.mu; guards the following field
	open map[string]*clientCall
}

// clientCall is a call that the client has not answered. It is immutable.
type clientCall struct {
	registry.ClientCall
	until  time.Time
	answer chan *protocol.ToolResult // gets one value at most, from clientCalls.answered; not closed
}

// RunTool implements registry.ClientTools. An absent client is asked when it returns.
func (c *clientCalls) RunTool(ctx context.Context, call registry.ClientCall) (json.RawMessage, error) {
	asked := &clientCall{ClientCall: call, answer: make(chan *protocol.ToolResult, 1)}
	asked.until, _ = ctx.Deadline()
	c.mu.Lock()
	if c.open == nil {
		c.open = map[string]*clientCall{}
	}
	c.open[call.ID] = asked
	c.s.send(asked.message(false))
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.open, call.ID)
		c.mu.Unlock()
	}()
	select {
	case r := <-asked.answer:
		return readResult(r)
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // the caller's own
	}
}

func (c *clientCall) message(again bool) *protocol.ToolCall {
	return &protocol.ToolCall{Header: inTurn(c.Turn), CallID: c.ID, Name: c.Tool, Args: c.Args,
		TimeoutMS: max(time.Until(c.until).Milliseconds(), 1), Again: again}
}

func readResult(r *protocol.ToolResult) (json.RawMessage, error) {
	switch {
	case r.Error != nil:
		kind := registry.ErrorPermanent
		if r.Error.Retryable {
			kind = registry.ErrorTransient
		}
		return nil, &registry.ToolError{Type: kind, Message: r.Error.Message, Retryable: r.Error.Retryable,
			PartialSideEffects: r.Error.Partial}
	case len(r.Result) > registry.MaxClientData:
		words := prompts.ClientAnswerTooLong
		return nil, &registry.ToolError{Type: registry.ErrorPermanent, Message: words.Message, Suggestion: words.Suggestion,
			PartialSideEffects: true}
	}
	return r.Result, nil
}

// askAgain repeats the unanswered calls to a returning client. It does nothing for a nil receiver. The caller must
// hold session.mu.
func (c *clientCalls) askAgain() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.open {
		c.s.send(call.message(true))
	}
}

// answered takes the answer to a call. It reports false if no call waits for it.
func (c *clientCalls) answered(r *protocol.ToolResult) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.open[r.CallID]
	if call == nil {
		return false
	}
	delete(c.open, r.CallID)
	call.answer <- r
	return true
}

// toolResult handles the client's answer to a call. A late or repeated answer is ignored.
func (a *attachment) toolResult(m *protocol.ToolResult) {
	s := a.s
	switch {
	case s.byClient == nil:
		s.clientError(protocol.CodeInvalidMessage, "type", "tool.result needs a session that was started with tools.")
		return
	case len(m.Result) > registry.MaxClientData:
		s.clientError(protocol.CodeInvalidMessage,
			"result", "tool.result: the field result has %d bytes; at most %d are accepted. The model was told that the "+
				"answer is too long.", len(m.Result), registry.MaxClientData)
	}
	if !s.byClient.answered(m) && !locked(s, func() bool { return s.state.Named(m.CallID) }) {
		s.clientError(protocol.CodeInvalidMessage,
			"call_id", "tool.result: no tool.call of this session has the call_id %q.", clip(m.CallID))
	}
}
