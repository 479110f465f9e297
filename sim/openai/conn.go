package openai

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/rest"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// conn is one session on one connection. The goroutine of run owns everything in it.
type conn struct {
	opts  wire.Options
	stats *wire.Stats
	log   *slog.Logger
	lines *voice.Cache
	w     *wire.Conn
	ids   *wire.IDs
	model model
	azure bool
	quota bool // the quota is exhausted: every response fails
	deaf  bool // speech is transcribed, nothing is answered
	begun time.Time

	sess     *session
	conv     conversation
	dialogue *scenario.Dialogue
	in       input
	// running are the responses in progress; at most one is not aside.
	running []*response
	agenda  wire.Agenda
	turn    int // responses begun
	calls   int // tool calls made
	spending
	due  []fault.Action // faults of the events already sent, for settle
	idle int            // incremented whenever a pending idle timeout becomes void
}

type spending struct {
	used    int
	cached  int // the next response finds these in the cache
	inputOf map[string]inputTokens
}

func (c *conn) run(first []fault.Action) {
	c.emit("session.created", "session", c.sess)
	c.Commit(first)
	c.Commit(c.w.At(fault.Point{At: fault.AtSetup}))
	c.settle()
	if c.opts.ConnectionLife >= 0 {
		c.after(sessionLife(c.opts), func() { c.expire(fault.Action{}) })
	}
	c.w.Run(c, wire.ShuttingDown)
}

func (c *conn) after(d time.Duration, do func()) {
	c.agenda.Add(time.Now().Add(d), func(time.Time) { do() })
}

// settle injects the faults of the events sent since the last call. These faults send events too; the limit is for a
// script that answers each event with another.
func (c *conn) settle() {
	for range 100 {
		if len(c.due) == 0 {
			return
		}
		due := c.due
		c.due = nil
		c.Commit(due)
	}
	c.due = nil
}

func (c *conn) Due() (time.Time, bool) {
	at, ok := c.agenda.Next()
	for _, r := range c.running {
		if !ok || r.next.Before(at) {
			at, ok = r.next, true
		}
	}
	return at, ok
}

func (c *conn) Proceed(now time.Time) {
	c.settle()
	c.agenda.Run(now, c.w.Closed)
	c.settle()
	for _, r := range slices.Clone(c.running) {
		c.advance(r, now)
	}
	c.settle()
}

func (c *conn) Commit(as []fault.Action) {
	for _, a := range as {
		switch a.Kind {
		case fault.GoAway:
			// OpenAI announces nothing; the session expires.
			c.after(a.For, func() { c.expire(a) })
		case fault.Expire:
			c.expire(a)
		case fault.Quota:
			if r := c.active(); r != nil {
				c.failQuota(r)
			} else {
				c.quota = true
			}
		case fault.CancelCall:
			if r := c.active(); r != nil {
				c.cancelCall(r, a)
			}
		case fault.DuplicateCall, fault.LateCall, fault.MissingID:
			if r := c.active(); r != nil {
				r.onCall = append(r.onCall, a)
			}
		case fault.Delay, fault.Drop, fault.Close, fault.UnknownEvent, fault.Malformed, fault.Silence, fault.SlowRead, fault.HTTPError:
			// wire.Conn has carried it out.
		case fault.Deaf:
			c.deaf = true
		case fault.RefuseResume, fault.Amnesia, fault.LateHandle, fault.NoHandle, fault.BusyHandle:
			// Sessions of this API cannot be resumed.
		}
	}
}

func (c *conn) expire(a fault.Action) {
	c.fail(rest.Invalid("session_expired", "", expiredText), "")
	c.w.Close(cmp.Or(a.Code, 1001), cmp.Or(a.Reason, expiredText))
}

func (c *conn) failQuota(r *response) {
	c.finish(r, failed, "error", object{
		"type", "insufficient_quota", "code", "insufficient_quota",
		"message", "You exceeded your current quota, please check your plan and billing details.",
	})
}

func (c *conn) active() *response {
	for _, r := range c.running {
		if !r.aside {
			return r
		}
	}
	return nil
}

func itemID(ids *wire.IDs) string { return "item_" + ids.Base62(21) }

type clientEvent struct {
	Type     string          `json:"type"`
	EventID  string          `json:"event_id"`
	Audio    *string         `json:"audio"`
	Session  json.RawMessage `json:"session"`
	Item     json.RawMessage `json:"item"`
	Previous *string         `json:"previous_item_id"`
	ItemID   string          `json:"item_id"`
	Index    *int            `json:"content_index"`
	EndMS    *int            `json:"audio_end_ms"`
	Response json.RawMessage `json:"response"`
	RespID   string          `json:"response_id"`
}

// events are the client's events in the order of the error for an unknown one.
var events = []struct {
	name   string
	handle func(c *conn, e *clientEvent) *rest.Error
}{
	{"session.update", (*conn).updateSession},
	{"session.close", func(c *conn, _ *clientEvent) *rest.Error {
		c.w.Close(1000, "")
		return nil
	}},
	{"transcription_session.update", func(*conn, *clientEvent) *rest.Error { return transcriptionUpdate() }},
	{"input_audio_buffer.append", (*conn).appendAudio},
	{"input_audio_buffer.commit", (*conn).commitByHand},
	{"input_audio_buffer.clear", (*conn).clear},
	{"conversation.item.create", (*conn).createItem},
	{"conversation.item.truncate", (*conn).truncate},
	{"conversation.item.delete", (*conn).deleteItem},
	{"conversation.item.retrieve", (*conn).retrieve},
	{"response.create", (*conn).createResponse},
	{"response.cancel", (*conn).cancelResponse},
}

func (c *conn) Handle(data []byte) {
	var e clientEvent
	if rest, encoded, ok := wire.CutText(data, "audio"); ok && json.Unmarshal(rest, &e) == nil &&
		e.Type == "input_audio_buffer.append" && e.Audio != nil && *e.Audio == "" {
		if err := c.append(encoded); err != nil {
			c.fail(err, e.EventID)
		}
		return
	}
	e = clientEvent{}
	if err := json.Unmarshal(data, &e); err != nil {
		c.fail(invalidEvent(data), "")
		return
	}
	if err := c.dispatch(&e); err != nil {
		c.fail(err, e.EventID)
	}
}

func invalidEvent(data []byte) *rest.Error {
	if !json.Valid(data) {
		return rest.Invalid("invalid_json", "", "The event could not be parsed as JSON. Send one JSON object in each text message.")
	}
	if kind := kindOf(data); kind != "an object" {
		return rest.Invalid("invalid_json", "", "The event must be a JSON object, but got %s instead.", kind)
	}
	return rest.Invalid("invalid_type", "", "A field of the event has the wrong type.")
}

func (c *conn) dispatch(e *clientEvent) *rest.Error {
	if e.Type == "" {
		return rest.Missing("type")
	}
	var names []string
	for _, known := range events {
		if known.name == e.Type {
			return known.handle(c, e)
		}
		names = append(names, known.name)
	}
	return rest.BadValue("type", e.Type, names...)
}

func (c *conn) updateSession(e *clientEvent) *rest.Error {
	changed, err := c.sess.update(e.Session)
	if err != nil {
		return err
	}
	before := c.sess
	c.sess = changed
	c.in.configure(before, changed)
	c.emit("session.updated", "session", c.sess)
	return nil
}

func (c *conn) createItem(e *clientEvent) *rest.Error {
	it, err := readItem(e.Item, "item", c.sess.Audio.Input.Format)
	if err != nil {
		return err
	}
	at := -1
	switch {
	case e.Previous == nil:
	case *e.Previous == "root":
		at = 0
	default:
		_, i := c.conv.find(*e.Previous)
		if i < 0 {
			return noSuchItem("previous_item_id", *e.Previous)
		}
		at = i + 1
	}
	if it.id == "" {
		it.id = itemID(c.ids)
	} else if old, _ := c.conv.find(it.id); old != nil {
		return rest.Invalid("item_create_duplicate_id", "item.id", "An item with the id '%s' is in the conversation already.", it.id)
	}
	if it.kind == kindOutput {
		if c.conv.callName(it.callID) == "" {
			return rest.Invalid("invalid_tool_call_id", "item.call_id", "Tool call ID '%s' not found in conversation.", it.callID)
		}
		c.stats.Results.Add(1)
	}
	c.conv.insert(it, at)
	c.emitItem("added", c.conv.before(it), it)
	c.emitItem("done", c.conv.before(it), it)
	return nil
}

func (c *conn) deleteItem(e *clientEvent) *rest.Error {
	_, i := c.conv.find(e.ItemID)
	if i < 0 {
		return cmp.Or(need(e.ItemID, "item_id"), noSuchItem("item_id", e.ItemID))
	}
	c.conv.remove(i)
	c.emit("conversation.item.deleted", "item_id", e.ItemID)
	return nil
}

func (c *conn) retrieve(e *clientEvent) *rest.Error {
	it, _ := c.conv.find(e.ItemID)
	if it == nil {
		return cmp.Or(need(e.ItemID, "item_id"), noSuchItem("item_id", e.ItemID))
	}
	body, err := withAudio(it)
	if err != nil {
		return rest.Invalid("server_error", "", "The item could not be read.")
	}
	c.emit("conversation.item.retrieved", "item", body)
	return nil
}

// truncate cuts the assistant's speech after the part that the user heard, and removes the transcript, because the
// heard words are unknown.
func (c *conn) truncate(e *clientEvent) *rest.Error {
	it, _ := c.conv.find(e.ItemID)
	switch {
	case e.ItemID == "":
		return rest.Missing("item_id")
	case e.EndMS == nil:
		return rest.Missing("audio_end_ms")
	case it == nil:
		return noSuchItem("item_id", e.ItemID)
	case it.kind != kindMessage || it.role != "assistant":
		return rest.Invalid("invalid_value", "item_id", "Only model output audio messages can be truncated")
	case e.Index != nil && *e.Index != 0:
		return rest.Invalid("invalid_value", "content_index", "Invalid content index: %d. Only 0 can be truncated.", *e.Index)
	case *e.EndMS < 0:
		return outOfRange("audio_end_ms", 0, it.length.Seconds()*1000, float64(*e.EndMS))
	}
	end := time.Duration(*e.EndMS) * time.Millisecond
	if end > it.length {
		return rest.Invalid("invalid_value", "", "Audio content of %dms is already shorter than %dms", it.length.Milliseconds(), *e.EndMS)
	}
	it.cutWords = truncated(cmp.Or(it.words(), it.cutWords), end, it.length)
	it.length = end
	c.conv.shorten(it, *e.EndMS*it.format.bytesPerMS())
	for i := range it.content {
		it.content[i].transcript = nil
	}
	c.emit("conversation.item.truncated", "item_id", it.id, "content_index", 0, "audio_end_ms", *e.EndMS)
	return nil
}

func (c *conn) cancelResponse(e *clientEvent) *rest.Error {
	for _, r := range c.running {
		if e.RespID == r.obj.ID || e.RespID == "" && !r.aside {
			c.finish(r, cancelled, "reason", "client_cancelled")
			return nil
		}
	}
	return rest.Invalid("response_cancel_not_active", "", "Cancellation failed: no active response found")
}
