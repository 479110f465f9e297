package openai

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/openai/openai-go/v3/realtime"

	"voicegw/transport"
)

// responseEvent is response.created and response.done. The SDK's type decodes every
// output item into a union of nine, and has a string where status_details holds an
// object.
type responseEvent struct {
	Response struct {
		ID            string                          `json:"id"`
		Status        string                          `json:"status"`
		StatusDetails *statusDetails                  `json:"status_details"`
		Output        []outputItem                    `json:"output"`
		Usage         *realtime.RealtimeResponseUsage `json:"usage"`
		Metadata      json.RawMessage                 `json:"metadata"`
	} `json:"response"`
}

// label returns the event_id of the request that the response answers, as its metadata
// repeats it; empty if it does not. Metadata of another form is somebody else's.
func (ev *responseEvent) label() string {
	var m map[string]json.RawMessage
	if json.Unmarshal(ev.Response.Metadata, &m) != nil {
		return ""
	}
	var label string
	if json.Unmarshal(m[labelKey], &label) != nil {
		return ""
	}
	return label
}

// statusDetails says why a response did not complete.
type statusDetails struct {
	Reason string `json:"reason"`
	Error  *struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// UnmarshalJSON takes an object. Anything else says nothing of use: xAI's server sends a
// string (recorded session, read 2026-11-23).
func (d *statusDetails) UnmarshalJSON(b []byte) error {
	type plain statusDetails
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*d = statusDetails(p)
	}
	return nil
}

// reasonSpeech is the reason of a response that speech detection cancelled.
const reasonSpeech = "turn_detected"

// outputItem is what is needed of an item of a response, of whatever type.
type outputItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
}

// call returns the item as a call, if it is one that the provider has completed. A
// server that gives no status means that it has.
func (o *outputItem) call() (finishedCall, bool) {
	done := o.Type == "function_call" && (o.Status == "completed" || o.Status == "")
	return finishedCall{item: o.ID, id: o.CallID, name: o.Name, args: o.Arguments}, done
}

// outputItemEvent is response.output_item.done.
type outputItemEvent struct {
	ResponseID string     `json:"response_id"`
	Item       outputItem `json:"item"`
}

func (c *conn) onResponseCreated(ev *responseEvent) *transport.Error {
	id := ev.Response.ID
	var stale bool
	var over []string
	c.mu.Lock()
	again := c.seq.busy && c.seq.active == id && id != "" || c.isMuted(id)
	if !again {
		stale = c.seq.created(id, ev.label(), time.Now())
		if !stale {
			over, c.seq.abandoned = c.seq.abandoned, nil
		}
		c.rearm()
	}
	c.mu.Unlock()
	switch {
	case again:
	case stale:
		c.log.Debug("response_stale", "provider", c.info.Provider, "response", id)
		c.mute(id)
		if !c.info.Capabilities.Cancel {
			break
		}
		c.aside(func() ([]byte, error) { return cancelFrame(opCancel+"_stale", id) })
	default:
		for _, lost := range over {
			c.mute(lost)
			c.give(transport.ResponseDone{ID: lost, Status: transport.ResponseInterrupted})
		}
		c.give(transport.ResponseStarted{ID: id})
	}
	return nil
}

// mute keeps what still comes of a response from the caller: another one has taken its
// place.
func (c *conn) mute(response string) {
	if response == "" {
		return
	}
	for i := len(c.openAudio) - 1; i >= 0; i-- {
		if it := c.openAudio[i]; it.response == response {
			c.endAudio(it)
		}
	}
	if len(c.muted) == maxMuted {
		c.muted = slices.Delete(c.muted, 0, 1)
	}
	c.muted = append(c.muted, response)
}

func (c *conn) isMuted(response string) bool {
	return len(c.muted) > 0 && slices.Contains(c.muted, response)
}

// onOutputItemDone gives a completed call. This event and not arguments.done decides,
// because only here the provider says that the call was not cut off.
func (c *conn) onOutputItemDone(ev *outputItemEvent) *transport.Error {
	if call, ok := ev.Item.call(); ok && !c.isMuted(ev.ResponseID) {
		c.giveCall(call)
	}
	return nil
}

// onArgumentsDone keeps the call for servers that never send output_item.done: the
// response's end settles it.
func (c *conn) onArgumentsDone(ev *realtime.ResponseFunctionCallArgumentsDoneEvent) *transport.Error {
	if ev.Name != "" && !c.isMuted(ev.ResponseID) {
		c.seenCalls.hold(finishedCall{item: ev.ItemID, id: ev.CallID, name: ev.Name, args: ev.Arguments})
	}
	return nil
}

// giveCall gives a call out, unless it was already.
func (c *conn) giveCall(call finishedCall) {
	if !c.seenCalls.first(call) {
		return
	}
	name := c.seenCalls.name()
	c.mu.Lock()
	c.calls.add(name, call.id)
	c.mu.Unlock()
	var args json.RawMessage // nil for none: an empty one could not be encoded
	if call.args != "" {
		args = json.RawMessage(call.args)
	}
	c.give(transport.ToolCall{Call: name, ID: call.id, Name: call.name, Args: args})
}

// onResponseDone gives what is still owed of the response, then its usage, then its
// end; and lets out the request that waited for it.
func (c *conn) onResponseDone(ev *responseEvent) *transport.Error {
	r := &ev.Response
	if r.ID == c.lastDone && r.ID != "" {
		return nil // said twice
	}
	c.lastDone = r.ID
	for i := len(c.openAudio) - 1; i >= 0; i-- {
		if it := c.openAudio[i]; it.response == r.ID || it.response == "" {
			c.endAudio(it)
		}
	}
	status, err := c.responseEnd(ev)
	muted := c.isMuted(r.ID)
	if status == transport.ResponseCompleted && !muted {
		c.giveOwedCalls(r.Output)
	}
	c.seenCalls.unfinished, c.seenCalls.held = c.seenCalls.unfinished[:0], 0
	if tokens := tokensOf(r.Usage); tokens != (transport.Tokens{}) {
		c.give(transport.Usage{Tokens: tokens})
	}
	if !muted {
		c.give(transport.ResponseDone{ID: r.ID, Status: status, Err: err})
	}

	bySpeech := r.StatusDetails != nil && r.StatusDetails.Reason == reasonSpeech
	c.mu.Lock()
	switch {
	case status == transport.ResponseCompleted:
		c.doom = nil // it recovered
	case errorRows[errorCode(err)].fatal:
		c.doom = err
	}
	send := c.seq.done(r.ID, bySpeech, time.Now())
	c.rearm()
	c.mu.Unlock()
	c.release(send)
	return nil
}

// giveOwedCalls gives the calls of a completed response that no output_item.done has
// brought.
func (c *conn) giveOwedCalls(output []outputItem) {
	for i := range output {
		if call, ok := output[i].call(); ok {
			c.giveCall(call)
		}
	}
	for _, call := range c.seenCalls.unfinished {
		c.giveCall(call)
	}
}

// responseEnd maps the status; an unknown one is taken for a completed response, as
// nothing says that it went wrong.
func (c *conn) responseEnd(ev *responseEvent) (transport.ResponseStatus, *transport.Error) {
	switch ev.Response.Status {
	case "cancelled":
		return transport.ResponseInterrupted, nil
	case "incomplete":
		return transport.ResponseIncomplete, nil
	case "failed":
		kind, code, text := transport.KindRefused, "", "the response failed without a reason"
		if d := ev.Response.StatusDetails; d != nil && d.Error != nil {
			code, text = d.Error.Code, d.Error.Type+": "+d.Error.Message
			if row, ok := errorRows[code]; ok {
				kind = row.kind
			}
		}
		return transport.ResponseFailed, c.fault("response", kind, code, c.providerText("response", text, ""))
	default:
		return transport.ResponseCompleted, nil
	}
}

func errorCode(err *transport.Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}

// tokensOf is one response's usage: the provider counts per response, so it is the
// delta. Text and audio tokens include the cached ones.
func tokensOf(u *realtime.RealtimeResponseUsage) transport.Tokens {
	if u == nil {
		return transport.Tokens{}
	}
	in, out, cached := &u.InputTokenDetails, &u.OutputTokenDetails, &u.InputTokenDetails.CachedTokensDetails
	t := transport.Tokens{
		Input: max(u.InputTokens, 0), Output: max(u.OutputTokens, 0),
		InputText: max(in.TextTokens, 0), InputAudio: max(in.AudioTokens, 0), InputOther: max(in.ImageTokens, 0),
		OutputText: max(out.TextTokens, 0), OutputAudio: max(out.AudioTokens, 0),
		CachedText: max(cached.TextTokens, 0), CachedAudio: max(cached.AudioTokens, 0),
	}
	if !in.JSON.CachedTokensDetails.Valid() && in.CachedTokens > 0 {
		// A server that does not tell them apart: the cheaper assumption is text.
		t.CachedText = min(in.CachedTokens, t.InputText)
	}
	return t
}
