package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"voicegw/internal/openaiwire"
	"voicegw/prompts"
	"voicegw/transport"
)

// A client event's event_id is its purpose and a number; the provider repeats it only in an error.
const (
	opUpdate   = "update"
	opCreate   = "create"
	opCancel   = "cancel"
	opTruncate = "truncate"
	opItem     = "item" // typed text or an image
	opBuffer   = "buffer"
	opResult   = "result"
	opAdded    = "added"
	opPast     = "past"
)

// opOfError returns the purpose of the client event that an error is about. Some servers repeat no event_id: then the
// code or parameter decides, or truncates: a truncation is pending.
func opOfError(e *errorValue, truncates bool) string {
	switch {
	case e.EventID != "":
		op, _, _ := strings.Cut(e.EventID, "_")
		return op
	case strings.HasPrefix(e.Code, "item_truncate"), e.Param == "audio_end_ms", strings.Contains(e.Message, openaiwire.ItemTruncate):
		return opTruncate
	case strings.HasPrefix(e.Code, "response_cancel"):
		return opCancel
	case strings.HasPrefix(e.Code, "input_audio_buffer"):
		return opBuffer
	case truncates && e.Type == "invalid_request_error":
		return opTruncate
	}
	return ""
}

// sampleRate is the rate in Hz of audio/pcm that the setup asks for; bytesPerMS is the size of 1 ms at that
// rate. A server may announce others.
const (
	sampleRate = 24000
	bytesPerMS = sampleRate / 1000 * 2
)

type object = openaiwire.Object

// encode encodes a client event with its members after event_id and type.
func encode(event, kind string, members ...any) ([]byte, error) {
	frame, err := append(object{"event_id", event, "type", kind}, members...).Encode(false)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errEncode, kind, err)
	}
	return frame, nil
}

// labelKey is the metadata with a request's event_id, which response.created and response.done repeat, as nothing else
// of a request (openai-go v3.95, RealtimeResponseCreateParams).
const labelKey = "voicegw_request"

// frame encodes the request. Without special wishes it has only its label, and the session's settings apply.
func (c *create) frame() ([]byte, error) {
	event := realtime.ResponseCreateEventParam{EventID: param.NewOpt(c.event)}
	if !c.plain {
		event.Response.Metadata = shared.Metadata{labelKey: c.event}
	}
	if c.toolsOff {
		event.Response.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	}
	if c.instructions != "" {
		event.Response.Instructions = param.NewOpt(c.instructions)
	}
	return event.MarshalJSON()
}

// cancelFrame encodes a response.cancel; an empty id means the active response.
func cancelFrame(event, response string) ([]byte, error) {
	if response == "" {
		return encode(event, openaiwire.ResponseCancel)
	}
	return encode(event, openaiwire.ResponseCancel, "response_id", response)
}

// message is an item of one part.
func message(role string, part ...any) object {
	return object{"type", openaiwire.Message, "role", role, "content", []object{part}}
}

func textItem(role, text string) object { return message(role, "type", "input_text", "text", text) }

// outputOf is the answer to a call; output is the envelope.
func outputOf(callID string, output []byte) object {
	return object{"type", openaiwire.FunctionOutput, "call_id", callID, "output", string(output)}
}

// historyPatience is how long the provider may take to confirm the history.
const historyPatience = 5 * time.Second

// pastItem is the client event that creates an item.
type pastItem struct {
	id    string
	frame []byte
}

// history encodes the conversation so far. An answer is text, as the provider accepts no past audio; a call and its
// output are a pair, because a call without output breaks every later response (conversation.item.create in openai-go
// v3.95; livekit/agents-js PR 977, read 2026-11-23).
func (d *dialect) history(setup transport.Setup) ([]pastItem, error) {
	past := setup.History
	if setup.Reanchor != "" {
		past = append(past[:len(past):len(past)], transport.PastNote{Text: setup.Reanchor})
	}
	if d.local && len(past) > 0 {
		return localHistory(past)
	}
	return d.chain(opPast+"_", past...)
}

// chain encodes entries as items. Each item names the one before it. prefix begins their ids, so that two chains have
// different ids; the provider's longest id has 32 characters.
func (d *dialect) chain(prefix string, past ...transport.Past) (items []pastItem, err error) {
	calls := 0
	for _, p := range past {
		if _, ok := p.(transport.PastTool); ok {
			calls++
		}
		list, err := d.itemsOf(p, prefix+"call_"+strconv.Itoa(calls))
		if err != nil {
			return nil, err
		}
		for _, it := range list {
			var members object
			if n := len(items); n > 0 {
				members = object{"previous_item_id", items[n-1].id}
			}
			id := prefix + strconv.Itoa(len(items)+1)
			frame, err := encode(id, openaiwire.ItemCreate, append(members, "item", append(object{"id", id}, it...))...)
			if err != nil {
				return nil, err
			}
			items = append(items, pastItem{id, frame})
		}
	}
	return items, nil
}

// itemsOf returns the items of an entry without their ids; callID is for a call.
func (d *dialect) itemsOf(p transport.Past, callID string) ([]object, error) {
	if d.local {
		line, err := pastLine(p)
		return []object{textItem("user", line)}, err
	}
	switch p := p.(type) {
	case transport.PastUser:
		return []object{textItem("user", p.Text)}, nil
	case transport.PastAssistant:
		status := openaiwire.Completed
		if p.Interrupted {
			status = openaiwire.Incomplete
		}
		return []object{append(message("assistant", "type", cmp.Or(d.pastText, "output_text"), "text", p.Text), "status", status)}, nil
	case transport.PastNote:
		return []object{textItem("system", p.Text)}, nil
	case transport.PastTool:
		call := object{"type", openaiwire.FunctionCall, "name", p.Name, "call_id", callID, "arguments", cmp.Or(string(p.Args), "{}")}
		return []object{call, outputOf(callID, p.Output)}, nil
	}
	return nil, fmt.Errorf("%w: %T is not an entry of a history", errCommand, p)
}

// pastLine is an entry in the words of a text.
func pastLine(p transport.Past) (string, error) {
	switch p := p.(type) {
	case transport.PastUser:
		return prompts.EarlierUser(p.Text), nil
	case transport.PastAssistant:
		return prompts.EarlierAnswer(p.Text, p.Interrupted), nil
	case transport.PastNote:
		return p.Text, nil
	case transport.PastTool:
		return prompts.EarlierCall(p.Name, string(p.Args), string(p.Output)), nil
	}
	return "", fmt.Errorf("%w: %T is not an entry of a history", errCommand, p)
}

func (c *conn) writeAll(items []pastItem) error {
	for _, it := range items {
		if err := c.write(it.frame); err != nil {
			return err
		}
	}
	return nil
}

// remember waits for the confirmation of the last item, so that no audio can come before it. Not every local server
// confirms it, and all read in order.
func (c *conn) remember(ctx context.Context, items []pastItem) *transport.Error {
	if len(items) == 0 {
		return nil
	}
	if c.local {
		if err := c.writeAll(items); err != nil {
			return c.readError(transport.OpHistory, err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	late := func() *transport.Error {
		return c.t.Fault(transport.OpHistory, transport.KindOfContext(ctx.Err()), "history_unconfirmed",
			errors.New("the provider has not confirmed the items of the history in time"))
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
	_ = c.writeAll(items) // the reads below find the reason
	// A server that changes the ids has confirmed the last item when it has confirmed each one.
	for range items {
		ev, _, err := c.await(typeItemDone, typeItemCreated)
		if err != nil || ev.Item.ID == items[len(items)-1].id {
			return err
		}
	}
	return nil
}
