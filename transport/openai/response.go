package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/transport"
)

// reasonSpeech is the reason for a response that speech detection cancelled.
const reasonSpeech = "turn_detected"

// A missing status counts as completed.
func (o *outputItem) call() (finishedCall, bool) {
	done := o.Type == "function_call" && (o.Status == "completed" || o.Status == "")
	return finishedCall{item: o.ID, id: o.CallID, name: o.Name, args: string(o.Arguments)}, done
}

func (c handler) onResponseCreated(ev *event) {
	id := ev.Response.ID
	var stale bool
	var over []string
	c.mu.Lock()
	again := c.seq.busy && c.seq.active == id && id != "" || c.response.isMuted(id)
	if !again {
		stale = c.seq.created(id, ev.Response.Metadata.Label, time.Now())
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
		if c.info.Capabilities.Cancel {
			c.aside(func() ([]byte, error) { return cancelFrame(opCancel+"_stale", id) })
		}
	default:
		for _, lost := range over {
			c.mute(lost)
			c.events.Add(transport.ResponseDone{ID: lost, Status: transport.ResponseInterrupted})
		}
		c.thought()
		c.events.Add(transport.ResponseStarted{ID: c.response.start(id)})
	}
}

// mute hides the later events of a response from the caller, because another response has taken its place.
func (c handler) mute(response string) {
	if response == "" {
		return
	}
	c.endAudioOf(response)
	c.response.muted = pushed(c.response.muted, maxMuted, response)
}

// The model thinks until its response is over or has something to say. For other items, their done says more.
func (c handler) onOutputItemAdded(ev *event) {
	if ev.Item.Type == itemReasoning && c.response.answering != "" && !c.response.isMuted(ev.ResponseID) {
		c.response.thinks = true
		c.events.Add(transport.Interaction{InProgress: true})
		return
	}
	c.thought()
}

func (c handler) thought() {
	if c.response.thinks {
		c.response.thinks = false
		c.events.Add(transport.Interaction{})
	}
}

const itemReasoning = "reasoning"

// Only this event, not arguments.done, reports that the call was not cut off.
func (c handler) onOutputItemDone(ev *event) {
	call, ok := ev.Item.call()
	switch {
	case !ok || c.response.isMuted(ev.ResponseID):
	case call.whole():
		c.giveCall(call)
	default:
		c.seenCalls.hold(call)
	}
}

// Servers without output_item.done: the call is decided at the response's end.
func (c handler) onArgumentsDone(ev *event) {
	if ev.Name != "" && !c.response.isMuted(ev.ResponseID) {
		c.seenCalls.hold(finishedCall{item: ev.ItemID, id: ev.CallID, name: ev.Name, args: string(ev.Arguments)})
	}
}

func (c handler) giveCall(call finishedCall) {
	if !c.seenCalls.first(call) {
		return
	}
	c.seenCalls.count++
	name := "c" + strconv.Itoa(c.seenCalls.count)
	c.mu.Lock()
	c.calls.put(maxCalls, name, call.id)
	c.mu.Unlock()
	var args json.RawMessage // nil if empty: an empty RawMessage cannot be encoded
	if call.args != "" {
		args = json.RawMessage(call.args)
	}
	c.events.Add(transport.ToolCall{Call: name, ID: call.id, Name: call.name, Args: args})
}

// onResponseDone emits the rest, the usage and the end; then it sends the request that waited.
func (c handler) onResponseDone(ev *event) {
	r := &ev.Response
	if r.ID == c.response.lastDone && r.ID != "" {
		return // a repeated event
	}
	c.response.lastDone = r.ID
	reported, began := c.response.endOf(r.ID)
	r.ID = reported
	if reported == c.response.answering {
		c.response.answering = ""
		c.thought()
	}
	c.endAudioOf(r.ID, "")
	status, err := c.responseEnd(r)
	muted := c.response.isMuted(r.ID) || r.ID == "" // no response was active
	if status == transport.ResponseCompleted && !muted {
		c.giveOwedCalls(r.Output)
	}
	c.seenCalls.over()
	if r.Usage == nil || *r.Usage == (usage{}) {
		r.Usage = ev.Usage
	}
	if tokens := tokensOf(r.Usage); tokens != (transport.Tokens{}) {
		c.events.Add(transport.Usage{Tokens: tokens})
	}
	if !muted {
		c.events.Add(transport.ResponseDone{ID: r.ID, Status: status, Err: err})
	}

	bySpeech := r.StatusDetails.Reason == reasonSpeech
	c.mu.Lock()
	switch {
	case status == transport.ResponseCompleted:
		c.doom = nil // it recovered
	case err != nil && (err.Kind == transport.KindAuth || err.Kind == transport.KindQuota):
		c.doom = err
	}
	send := c.seq.done(began, bySpeech, time.Now())
	c.rearm()
	c.mu.Unlock()
	c.release(send)
}

func (c handler) giveOwedCalls(output []outputItem) {
	for _, whole := range []bool{true, false} { // a call with missing fields may be the same as a whole one
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

// responseEnd maps the status; an unknown status counts as completed, because nothing indicates a failure.
func (c handler) responseEnd(r *responseValue) (transport.ResponseStatus, *transport.Error) {
	switch r.Status {
	case "cancelled":
		return transport.ResponseInterrupted, nil
	case "incomplete":
		kind := cmp.Or(transport.KindOfCode(r.StatusDetails.Reason), transport.KindRefused)
		return transport.ResponseIncomplete, c.t.Fault("response", kind, r.StatusDetails.Reason,
			errors.New("the provider cut the answer off"))
	case "failed":
		e := &r.StatusDetails.Error
		if *e == (errorValue{}) {
			return transport.ResponseFailed, c.t.Fault("response", transport.KindServer, "",
				errors.New("the response failed without a reason"))
		}
		// An unknown failure counts as the server's, as the request may succeed: the attempts are bounded.
		err := c.t.reported("response", cmp.Or(transport.KindOfCode(e.Code, e.Type), transport.KindServer), e)
		err.Code = cmp.Or(e.Code, e.Type)
		return transport.ResponseFailed, err
	default:
		return transport.ResponseCompleted, nil
	}
}

// The provider counts per response, so this is the delta. Text and audio include cached tokens.
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
		// This server does not distinguish them: text is the cheaper assumption.
		t.CachedText = min(in.Cached, t.InputText)
	}
	return t
}

// responseState is the caller's view of the responses. It is owned by Recv.
type responseState struct {
	answering string   // the response that was reported as started and not yet as done
	lastDone  string   // the response that ended last
	thinks    bool     // the response has an item of reasoning, and nothing newer
	unnamed   int      // responses to which the provider gave no id
	muted     []string // responses whose later events are hidden from the caller, oldest first
}

// unnamedPrefix is the prefix of made-up ids, for responses without a readable id from the provider.
const unnamedPrefix = "unnamed_"

func (r *responseState) start(id string) string {
	if id == "" {
		r.unnamed++
		id = unnamedPrefix + strconv.Itoa(r.unnamed)
	}
	r.answering = id
	return id
}

// endOf returns the ended response's id for the caller, and the provider's. An unreadable id means the active one.
func (r *responseState) endOf(id string) (reported, began string) {
	switch unnamed := strings.HasPrefix(r.answering, unnamedPrefix); {
	case unnamed:
		return r.answering, ""
	case id == "":
		return r.answering, r.answering
	default:
		return id, id
	}
}

func (r *responseState) isMuted(id string) bool {
	return len(r.muted) > 0 && slices.Contains(r.muted, id)
}

// Limits of a connection's memory. The oldest entry is dropped first.
const (
	maxSpoken    = 128      // spoken items, for Truncate
	maxTexts     = 64       // items whose text is still incomplete
	maxTextBytes = 64 << 10 // bytes of text of one content part
	maxParts     = 8        // content parts of one item
	maxCalls     = 1024     // calls that may still be answered or repeated
	maxHeld      = 128      // calls of a response that is not done
	maxHeldBytes = 1 << 20  // bytes of those calls
	maxMuted     = 32       // responses hidden from the caller
)

type spokenItem struct {
	// Fixed when made.
	id       string
	response string
	// Owned by Recv.
	closed bool // AudioDone was emitted
	// bytes of PCM that have arrived, as if at sampleRate: written by Recv, read by Send.
	bytes atomic.Int64
}

// newest is a map of bounded size: a new entry replaces the oldest one.
type newest[V any] struct {
	by    map[string]V
	order []string // the keys by age
}

// put adds an entry; limit is the same in each call.
func (n *newest[V]) put(limit int, key string, v V) {
	if n.by == nil {
		n.by = make(map[string]V)
	}
	if len(n.order) == limit {
		delete(n.by, n.order[0])
	}
	n.by[key] = v
	n.order = pushed(n.order, limit, key)
}

// pushed appends v to a list of bounded length, which loses its oldest entry.
func pushed[T any](list []T, limit int, v T) []T {
	if len(list) == limit {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, v)
}

// texts collects the words of each item. It is owned by Recv.
type texts struct{ newest[*[maxParts]string] }

// update appends text to one content part of an item or, with final, replaces the part. It returns the item's whole
// text; ok is false for a part number out of range.
func (t *texts) update(item string, index int64, text string, final bool) (all string, ok bool) {
	if index < 0 || index >= maxParts {
		return "", false
	}
	parts := t.by[item]
	if parts == nil {
		parts = new([maxParts]string)
		t.put(maxTexts, item, parts)
	}
	if final {
		parts[index] = ""
	}
	parts[index] += clip(text, max(maxTextBytes-len(parts[index]), 0))
	return t.get(item), true
}

func (t *texts) get(item string) string {
	all := ""
	if parts := t.by[item]; parts != nil {
		for _, p := range parts {
			all += p
		}
	}
	return all
}

// callBook lets every call through once; a call is identified by its item and the provider's id. It is owned by Recv.
type callBook struct {
	seen newest[struct{}]
	// unfinished calls have their arguments but have not been reported as done; in order of arrival.
	unfinished []finishedCall
	held       int // bytes of unfinished
	count      int
	given      []finishedCall // calls of the active response that were let through
}

type finishedCall struct{ item, id, name, args string }

// key distinguishes one call of one item from all others; no id contains a NUL.
func (f finishedCall) key() string { return f.item + "\x00" + f.id }

// whole reports whether the call has all its fields; one sent as another JSON type is missing.
func (f finishedCall) whole() bool {
	return f.item != "" && f.id != "" && f.name != "" && f.args != ""
}

// maybe reports whether two messages may describe the same call: no field that both have differs.
func (f finishedCall) maybe(other finishedCall) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(f.item, other.item) && same(f.id, other.id) && same(f.name, other.name)
}

// A call with missing fields is new only if it cannot be any earlier call of the response.
func (b *callBook) first(f finishedCall) bool {
	if !f.whole() && slices.ContainsFunc(b.given, f.maybe) {
		return false
	}
	if _, again := b.seen.by[f.key()]; again {
		return false
	}
	b.seen.put(maxCalls, f.key(), struct{}{})
	if len(b.given) < maxHeld {
		b.given = append(b.given, finishedCall{item: f.item, id: f.id, name: f.name})
	}
	return true
}

func (b *callBook) over() {
	clear(b.unfinished)
	clear(b.given)
	b.unfinished, b.held, b.given = b.unfinished[:0], 0, b.given[:0]
}

// hold records a call whose arguments are complete. Calls beyond the limits are dropped.
func (b *callBook) hold(f finishedCall) {
	size := len(f.item) + len(f.id) + len(f.name) + len(f.args)
	if len(b.unfinished) < maxHeld && b.held+size <= maxHeldBytes {
		b.unfinished = append(b.unfinished, f)
		b.held += size
	}
}
