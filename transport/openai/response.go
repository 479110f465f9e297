package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/transport"
)

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

// reasonSpeech is the reason of a response that speech detection cancelled.
const reasonSpeech = "turn_detected"

// call returns the item as a call, if it is one that the provider has completed. A
// server that gives no status means that it has.
func (o *outputItem) call() (finishedCall, bool) {
	done := o.Type == "function_call" && (o.Status == "completed" || o.Status == "")
	return finishedCall{item: o.ID, id: o.CallID, name: o.Name, args: string(o.Arguments)}, done
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
		if id == "" {
			c.unnamed++
			id = unnamedPrefix + strconv.Itoa(c.unnamed)
		}
		c.answering = id
		c.give(transport.ResponseStarted{ID: id})
	}
	return nil
}

// unnamedPrefix begins the ids of responses that the provider has given none that can be
// read.
const unnamedPrefix = "unnamed_"

// endOf returns the response that a response.done ends, for the caller, and by the name
// that the provider has given it when it began. An id that cannot be read, here or there,
// means the response that is under way.
func (c *conn) endOf(id string) (told, began string) {
	switch unnamed := strings.HasPrefix(c.answering, unnamedPrefix); {
	case unnamed:
		return c.answering, ""
	case id == "":
		return c.answering, c.answering
	default:
		return id, id
	}
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
func (c *conn) onOutputItemDone(ev *event) *transport.Error {
	call, ok := ev.Item.call()
	switch {
	case !ok || c.isMuted(ev.ResponseID):
	case call.whole():
		c.giveCall(call)
	default:
		c.seenCalls.hold(call)
	}
	return nil
}

// onArgumentsDone keeps the call for servers that never send output_item.done: the
// response's end settles it.
func (c *conn) onArgumentsDone(ev *event) *transport.Error {
	if ev.Name != "" && !c.isMuted(ev.ResponseID) {
		c.seenCalls.hold(finishedCall{item: ev.ItemID, id: ev.CallID, name: ev.Name, args: string(ev.Arguments)})
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
	told, began := c.endOf(r.ID)
	r.ID = told
	if told == c.answering {
		c.answering = ""
	}
	for i := len(c.openAudio) - 1; i >= 0; i-- {
		if it := c.openAudio[i]; it.response == r.ID || it.response == "" {
			c.endAudio(it)
		}
	}
	status, err := c.responseEnd(ev)
	muted := c.isMuted(r.ID) || r.ID == "" // nothing was under way
	if status == transport.ResponseCompleted && !muted {
		c.giveOwedCalls(r.Output)
	}
	c.seenCalls.over()
	if r.Usage == nil || *r.Usage == (usage{}) {
		r.Usage = ev.Usage
	}
	if tokens := tokensOf(r.Usage); tokens != (transport.Tokens{}) {
		c.give(transport.Usage{Tokens: tokens})
	}
	if !muted {
		c.give(transport.ResponseDone{ID: r.ID, Status: status, Err: err})
	}

	bySpeech := r.StatusDetails.Reason == reasonSpeech
	c.mu.Lock()
	switch {
	case status == transport.ResponseCompleted:
		c.doom = nil // it recovered
	case errorRows[errorCode(err)].fatal:
		c.doom = err
	}
	send := c.seq.done(began, bySpeech, time.Now())
	c.rearm()
	c.mu.Unlock()
	c.release(send)
	return nil
}

// giveOwedCalls gives the calls of a completed response that no output_item.done has
// brought.
func (c *conn) giveOwedCalls(output []outputItem) {
	for _, whole := range []bool{true, false} { // a call that lacks something may be one of the whole ones
		for i := range output {
			if call, ok := output[i].call(); ok && call.whole() == whole {
				c.giveCall(call)
			}
		}
		for _, call := range c.seenCalls.unfinished {
			if call.whole() == whole {
				c.giveCall(call)
			}
		}
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
		if e := ev.Response.StatusDetails.Error; e != (errorValue{}) {
			code, text = e.Code, e.Type+": "+e.Message
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
func tokensOf(u *usage) transport.Tokens {
	if u == nil {
		return transport.Tokens{}
	}
	in := &u.Input
	t := transport.Tokens{
		Input: max(u.InputTokens, 0), Output: max(u.OutputTokens, 0),
		InputText: max(in.Text, 0), InputAudio: max(in.Audio, 0), InputOther: max(in.Image, 0),
		OutputText: max(u.Output.Text, 0), OutputAudio: max(u.Output.Audio, 0),
	}
	switch {
	case in.Of != nil:
		t.CachedText, t.CachedAudio = max(in.Of.Text, 0), max(in.Of.Audio, 0)
	case in.Cached > 0:
		// A server that does not tell them apart: the cheaper assumption is text.
		t.CachedText = min(in.Cached, t.InputText)
	}
	return t
}
