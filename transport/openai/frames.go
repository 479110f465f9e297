package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

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

func opOf(eventID string) string {
	op, _, _ := strings.Cut(eventID, "_")
	return op
}

// opOfError returns the purpose of the client event that an error is about. Some servers repeat no event_id: then the
// code or parameter decides, or truncates: a truncation is pending.
func opOfError(e *errorValue, truncates bool) string {
	switch {
	case e.EventID != "":
		return opOf(e.EventID)
	case strings.HasPrefix(e.Code, "item_truncate"), e.Param == "audio_end_ms", strings.Contains(e.Message, "conversation.item.truncate"):
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

// The library's types would copy the whole session, with tools and instructions, once for each level.
func sessionUpdate(event string, setup transport.Setup, o *Options) ([]byte, error) {
	session, err := sessionOf(setup, o).MarshalJSON()
	if err != nil {
		return nil, err
	}
	tools := toolList(setup.Tools)
	const rest = `{"session":,"tools":,"event_id":"","type":"session.update"}`
	frame := make([]byte, 0, len(session)+len(tools)+len(event)+len(rest))
	frame = append(append(frame, `{"session":`...), session...)
	if len(setup.Tools) > 0 { // a new session has none
		frame = append(append(append(frame[:len(frame)-1], `,"tools":`...), tools...), '}')
	}
	frame = strconv.AppendQuote(append(frame, `,"event_id":`...), event)
	return append(frame, `,"type":"session.update"}`...), nil
}

func sessionOf(setup transport.Setup, o *Options) *realtime.RealtimeSessionCreateRequestParam {
	pcm := realtime.RealtimeAudioFormatsUnionParam{
		OfAudioPCM: &realtime.RealtimeAudioFormatsAudioPCMParam{Type: "audio/pcm", Rate: sampleRate},
	}
	input := realtime.RealtimeAudioConfigInputParam{Format: pcm, TurnDetection: turnDetection(setup)}
	if transcription := o.TranscriptionModel; transcription != NoTranscription {
		input.Transcription = realtime.AudioTranscriptionParam{Model: realtime.AudioTranscriptionModel(transcription)}
		if lang, _, _ := strings.Cut(setup.Language, "-"); lang != "" {
			// ISO 639-1, whereas Setup has BCP 47.
			input.Transcription.Language = param.NewOpt(strings.ToLower(lang))
		}
	}
	output := realtime.RealtimeAudioConfigOutputParam{Format: pcm}
	if setup.Voice != "" {
		output.Voice.OfString = param.NewOpt(setup.Voice)
	}
	session := &realtime.RealtimeSessionCreateRequestParam{
		Instructions:     param.NewOpt(setup.Instructions),
		OutputModalities: []string{"audio"},
		Audio:            realtime.RealtimeAudioConfigParam{Input: input, Output: output},
		ToolChoice:       realtime.RealtimeToolChoiceConfigUnionParam{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsAuto)},
	}
	if o.Reasoning != "" && rowIn(modelRows, setup.Model, DefaultModel).reasons {
		session.Reasoning.Effort = realtime.RealtimeReasoningEffort(o.Reasoning)
	}
	if setup.Instructions == "" {
		session.Instructions = param.Opt[string]{} // the provider's own defaults apply
	}
	return session
}

func turnDetection(setup transport.Setup) realtime.RealtimeAudioInputTurnDetectionUnionParam {
	if setup.ManualActivity {
		off := param.NullStruct[realtime.RealtimeAudioInputTurnDetectionServerVadParam]()
		return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: &off}
	}
	vad := &realtime.RealtimeAudioInputTurnDetectionServerVadParam{
		CreateResponse:    param.NewOpt(true),
		InterruptResponse: param.NewOpt(true),
	}
	if setup.SilenceMS > 0 {
		vad.SilenceDurationMs = param.NewOpt(int64(setup.SilenceMS))
	}
	if setup.PrefixMS > 0 {
		vad.PrefixPaddingMs = param.NewOpt(int64(setup.PrefixMS))
	}
	return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: vad}
}

// toolList is a list of RealtimeFunctionTool (openai-go v3.95), whose encoding by the library takes four times its
// length. It is never null, because an empty list clears and a missing one keeps. Parameters are valid JSON.
func toolList(tools []transport.Tool) json.RawMessage {
	const rest = `{"name":"","description":"","parameters":,"type":"function"},`
	size := len("[]")
	for _, t := range tools {
		size += len(rest) + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	out := append(make([]byte, 0, size+size/8), '[')
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, `{"name":`...), t.Name)
		if t.Description != "" {
			out = appendString(append(out, `,"description":`...), t.Description)
		}
		if len(t.Parameters) > 0 {
			out = append(append(out, `,"parameters":`...), t.Parameters...)
		}
		out = append(out, `,"type":"function"}`...)
	}
	return append(out, ']')
}

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // cannot fail
	return append(dst, text...)
}

// labelKey is the metadata with a request's event_id, which response.created and response.done repeat, as nothing else
// of a request (openai-go v3.95, RealtimeResponseCreateParams).
const labelKey = "voicegw_request"

// Without special wishes the frame has only its label, and the session's settings apply.
func createFrame(c *create) ([]byte, error) {
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
	return json.Marshal(event)
}

// cancelFrame encodes a response.cancel; an empty id means the active response.
func cancelFrame(event, response string) ([]byte, error) {
	ev := realtime.ResponseCancelEventParam{EventID: param.NewOpt(event)}
	if response != "" {
		ev.ResponseID = param.NewOpt(response)
	}
	return json.Marshal(ev)
}

// truncateFrame encodes a conversation.item.truncate. Spoken items have one content part, number 0.
func truncateFrame(event, item string, audioMS int64) ([]byte, error) {
	return json.Marshal(realtime.ConversationItemTruncateEventParam{
		EventID: param.NewOpt(event), ItemID: item, ContentIndex: 0, AudioEndMs: audioMS,
	})
}

func textFrame(event, text string) ([]byte, error) {
	content := []realtime.RealtimeConversationItemUserMessageContentParam{{Type: "input_text", Text: param.NewOpt(text)}}
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item:    realtime.ConversationItemParamOfRealtimeUserMessageItem(content),
	})
}

func imageFrame(event string, image transport.Image) ([]byte, error) {
	url := "data:" + image.MIME + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item: realtime.ConversationItemParamOfRealtimeUserMessageItem([]realtime.RealtimeConversationItemUserMessageContentParam{
			{Type: "input_image", ImageURL: param.NewOpt(url)},
		}),
	})
}

// resultFrame encodes the answer to a call; output is the envelope as text.
func resultFrame(event, callID string, output json.RawMessage) ([]byte, error) {
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item:    realtime.ConversationItemParamOfFunctionCallOutput(callID, string(output)),
	})
}

func clearFrame(event string) ([]byte, error) {
	return json.Marshal(realtime.InputAudioBufferClearEventParam{EventID: param.NewOpt(event)})
}

func commitFrame(event string) ([]byte, error) {
	return json.Marshal(realtime.InputAudioBufferCommitEventParam{EventID: param.NewOpt(event)})
}

// historyPatience is how long the provider may take to confirm the history.
const historyPatience = 5 * time.Second

// errHistoryLate means that the provider has not confirmed the history in time.
var errHistoryLate = errors.New("the provider has not confirmed the items of the history in time")

// pastItem is one item of the history, as the client event that creates it.
type pastItem struct {
	id    string
	frame []byte
}

// history encodes a chain of items: each names its predecessor. An answer is text, as the provider accepts no past
// audio; a call and its output are a pair, because a call without output breaks every later response
// (conversation.item.create in openai-go v3.95; livekit/agents-js PR 977, read 2026-11-23).
func (d *dialect) history(setup transport.Setup) ([]pastItem, error) {
	past := setup.History
	if setup.Reanchor != "" {
		past = append(past[:len(past):len(past)], transport.PastNote{Text: setup.Reanchor})
	}
	if d.local && len(past) > 0 {
		return localHistory(past)
	}
	chain := chain{prefix: opPast + "_"}
	for _, p := range past {
		if err := chain.take(p, d); err != nil {
			return nil, err
		}
	}
	return chain.items, nil
}

// entry adds an entry in the dialect's form.
func (c *chain) entry(p transport.Past, d *dialect) error {
	if !d.local {
		return c.take(p, d)
	}
	line, err := pastLine(p)
	if err != nil {
		return err
	}
	c.user(line)
	return c.err
}

func (c *chain) take(p transport.Past, d *dialect) error {
	switch p := p.(type) {
	case transport.PastUser:
		c.user(p.Text)
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

// The library's type has only today's content types, but some services still use "text".
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

// remember waits for the confirmation of the last item, so that no audio can come before it.
func (c *conn) remember(ctx context.Context, items []pastItem) *transport.Error {
	if c.local {
		return remind(c, items)
	}
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	late := func() *transport.Error {
		return c.t.fault(transport.OpHistory, transport.KindOfContext(ctx.Err()), "history_unconfirmed", errHistoryLate)
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
