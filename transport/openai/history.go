package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/transport"
)

// historyPatience is how long the provider may take to confirm the history.
const historyPatience = 5 * time.Second

// errHistoryLate means that the provider has not confirmed the history in time.
var errHistoryLate = errors.New("the provider has not confirmed the items of the history in time")

// pastItem is one item of the history, as the client event that creates it.
type pastItem struct {
	id    string
	frame []byte
}

// history encodes the setup's history as a chain of items: each names the one before it, so that their order does not
// depend on the server. An answer is text, because the provider accepts no audio in a past answer; a tool call and its
// output are always a pair, because a call without its output breaks every later response (doc comments of
// conversation.item.create in openai-go v3.95; livekit/agents-js PR 977, read 2026-11-23).
func (d *dialect) history(setup transport.Setup) ([]pastItem, error) {
	past := setup.History
	if setup.Reanchor != "" {
		past = append(past[:len(past):len(past)], transport.PastNote{Text: setup.Reanchor})
	}
	chain := chain{prefix: "past_"}
	for _, p := range past {
		if err := chain.take(p, d); err != nil {
			return nil, err
		}
	}
	return chain.items, nil
}

func (c *chain) take(p transport.Past, d *dialect) error {
	switch p := p.(type) {
	case transport.PastUser:
		item := realtime.ConversationItemParamOfRealtimeUserMessageItem(
			[]realtime.RealtimeConversationItemUserMessageContentParam{{Type: "input_text", Text: param.NewOpt(p.Text)}})
		c.add(item, item.OfRealtimeUserMessageItem)
	case transport.PastAssistant:
		c.answer(p, d.pastText)
	case transport.PastNote:
		item := realtime.ConversationItemParamOfRealtimeSystemMessageItem(
			[]realtime.RealtimeConversationItemSystemMessageContentParam{{Type: "input_text", Text: param.NewOpt(p.Text)}})
		c.add(item, item.OfRealtimeSystemMessageItem)
	case transport.PastTool:
		c.tool(p)
	default:
		return fmt.Errorf("%w: %T is no entry of a history", errCommand, p)
	}
	if c.err != nil {
		return fmt.Errorf("%w: %w", errEncode, c.err)
	}
	return nil
}

// chain builds the items of a history.
type chain struct {
	// prefix begins the id of each item, so that the ids of two chains differ.
	prefix string
	items  []pastItem
	calls  int
	err    error
}

// nextID names the next item. The provider's longest id has 32 characters.
func (c *chain) nextID() string { return c.prefix + strconv.Itoa(len(c.items)+1) }

// add adds an item; part is the member of the union that is set.
func (c *chain) add(item realtime.ConversationItemUnionParam, part any) {
	id := c.nextID()
	switch part := part.(type) {
	case *realtime.RealtimeConversationItemUserMessageParam:
		part.ID = param.NewOpt(id)
	case *realtime.RealtimeConversationItemSystemMessageParam:
		part.ID = param.NewOpt(id)
	case *realtime.RealtimeConversationItemFunctionCallParam:
		part.ID = param.NewOpt(id)
	case *realtime.RealtimeConversationItemFunctionCallOutputParam:
		part.ID = param.NewOpt(id)
	}
	frame, err := json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(id), PreviousItemID: c.previous(), Item: item,
	})
	c.keep(id, frame, err)
}

func (c *chain) keep(id string, frame []byte, err error) {
	c.items = append(c.items, pastItem{id: id, frame: frame})
	c.err = errors.Join(c.err, err)
}

// previous is the id of the item before the next one; unset for the first.
func (c *chain) previous() (id param.Opt[string]) {
	if n := len(c.items); n > 0 {
		id = param.NewOpt(c.items[n-1].id)
	}
	return id
}

// answer adds the heard part of an answer. The library's type has only the content types of today's API, but some
// services still use "text".
func (c *chain) answer(p transport.PastAssistant, kind string) {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Role    string `json:"role"`
		Status  string `json:"status"`
		Content []part `json:"content"`
	}
	status := "completed"
	if p.Interrupted {
		status = "incomplete"
	}
	kind = cmp.Or(kind, "output_text")
	id := c.nextID()
	frame, err := json.Marshal(struct {
		EventID  string  `json:"event_id"`
		Type     string  `json:"type"`
		Previous string  `json:"previous_item_id,omitempty"`
		Item     message `json:"item"`
	}{id, "conversation.item.create", c.previous().Or(""), message{id, "message", "assistant", status, []part{{kind, p.Text}}}})
	c.keep(id, frame, err)
}

func (c *chain) tool(p transport.PastTool) {
	c.calls++
	id := c.prefix + "call_" + strconv.Itoa(c.calls)
	args := string(p.Args)
	args = cmp.Or(args, "{}")
	call := realtime.ConversationItemParamOfFunctionCall(args, p.Name)
	call.OfFunctionCall.CallID = param.NewOpt(id)
	c.add(call, call.OfFunctionCall)
	output := realtime.ConversationItemParamOfFunctionCallOutput(id, string(p.Output))
	c.add(output, output.OfFunctionCallOutput)
}

// remember sends the history and waits until the provider has confirmed the last item of it, so
// that no audio can come before it. ctx and historyPatience limit the wait.
func (c *conn) remember(ctx context.Context, items []pastItem) *transport.Error {
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	late := func() *transport.Error {
		return c.t.fault(transport.OpHistory, contextKind(ctx), "history_unconfirmed", errHistoryLate)
	}
	stop := c.watch(ctx, late)
	err := c.sendHistory(items)
	if !stop() {
		return late()
	}
	if err != nil {
		err.Op = transport.OpHistory
	}
	return err
}

func (c *conn) sendHistory(items []pastItem) *transport.Error {
	for _, it := range items {
		if err := c.write(it.frame); err != nil {
			break // the reads below find the reason
		}
	}
	// A server that gives items other ids has confirmed the last one when it has confirmed as many.
	last, count := items[len(items)-1].id, len(items)
	return c.await(func(eventType string, frame []byte) bool {
		var ev event
		if !c.parse(eventType, frame, &ev) {
			return false
		}
		count--
		return ev.Item.ID == last || count == 0
	}, typeItemDone, typeItemCreated)
}
