package openai

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"voicegw/internal/openaiwire"
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

	sess     *openaiwire.Session
	conv     conversation
	dialogue *scenario.Dialogue
	in       input
	// running are the responses in progress; at most one is not aside.
	running []*response
	later   wire.Pending
	turn    int // responses begun
	refused int // errors sent
	calls   int // tool calls made
	spending
	idle int // incremented whenever a pending idle timeout becomes void
}

type spending struct {
	used   int
	cached int // the next response finds these in the cache
}

func (c *conn) run(first []scenario.Fault) {
	c.tell("session.created", c.model.shown(c.sess))
	if c.model.conversation {
		c.tell("conversation.created", object{"id", c.conv.id})
	}
	c.Commit(first)
	c.Commit(c.w.At(scenario.Point{At: scenario.AtSetup}))
	c.settle()
	if life := c.opts.ConnectionLife; life > 0 || life == 0 && !c.model.local {
		c.later.After(sessionLife(c.opts), func() { c.expire(scenario.Fault{}) })
	}
	c.w.Run(c, wire.ShuttingDown)
}

func (c *conn) settle() { c.later.Settle(c.Commit) }

func (c *conn) Due() (time.Time, bool) {
	at, ok := c.later.Next()
	for _, r := range c.running {
		if !ok || r.next.Before(at) {
			at, ok = r.next, true
		}
	}
	return at, ok
}

func (c *conn) Proceed(now time.Time) {
	c.settle()
	c.later.Run(now, c.w.Closed)
	c.settle()
	for _, r := range slices.Clone(c.running) {
		c.advance(r, now)
	}
	c.settle()
}

func (c *conn) Commit(as []scenario.Fault) {
	for _, a := range as {
		switch a.Kind {
		case scenario.GoAway:
			// OpenAI announces nothing; the session expires.
			c.later.After(a.For, func() { c.expire(a) })
		case scenario.Expire:
			c.expire(a)
		case scenario.Quota:
			if r := c.active(); r != nil {
				c.failQuota(r)
			} else {
				c.quota = true
			}
		case scenario.CancelCall:
			if r := c.active(); r != nil {
				c.cancelCall(r, a)
			}
		case scenario.DuplicateCall, scenario.LateCall, scenario.MissingID:
			if r := c.active(); r != nil {
				r.onCall = append(r.onCall, a)
			}
		case scenario.Deaf:
			c.deaf = true
		default:
			// wire.Conn has carried it out, or sessions of this API have nothing like it.
		}
	}
}

func (c *conn) expire(a scenario.Fault) {
	c.fail(openaiwire.Invalid("session_expired", "", expiredText), "")
	c.w.Close(cmp.Or(a.Code, 1001), cmp.Or(a.Reason, expiredText))
}

func (c *conn) failQuota(r *response) {
	c.finish(r, openaiwire.Failed, "error", object{
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

func (c *conn) Handle(data []byte) {
	e, err := openaiwire.ParseEvent(data)
	if err == nil {
		err = c.handle(&e)
	}
	if err != nil {
		c.fail(err, e.ID)
	}
}

func (c *conn) handle(e *openaiwire.ClientEvent) *openaiwire.Error {
	switch e.Type {
	case openaiwire.SessionUpdate:
		return c.updateSession(e)
	case openaiwire.SessionClose:
		c.w.Close(1000, "")
	case openaiwire.AudioAppend:
		return c.append(e.Audio)
	case openaiwire.AudioCommit:
		return c.commitByHand()
	case openaiwire.AudioClear:
		c.in.forget()
		c.tell("input_audio_buffer.cleared")
	case openaiwire.ItemCreate:
		return c.createItem(e)
	case openaiwire.ItemTruncate:
		return c.truncate(e)
	case openaiwire.ItemDelete:
		return c.deleteItem(e)
	case openaiwire.ItemRetrieve:
		return c.retrieve(e)
	case openaiwire.ResponseCreate:
		return c.createResponse(e)
	case openaiwire.ResponseCancel:
		return c.cancelResponse(e)
	}
	return nil
}

func (c *conn) updateSession(e *openaiwire.ClientEvent) *openaiwire.Error {
	if err := c.model.checkShown(c.sess, e.Session); err != nil {
		return err
	}
	changed, err := c.sess.Update(e.Session)
	if err != nil {
		return err
	}
	before := c.sess
	c.sess = changed
	c.in.configure(before, changed)
	c.tell("session.updated", c.model.shown(c.sess))
	return nil
}

func (c *conn) createItem(e *openaiwire.ClientEvent) *openaiwire.Error {
	it := itemOf(e.Item, c.sess.Audio.Input.Format)
	at, ok := c.conv.items.After(e.Previous)
	if !ok {
		return openaiwire.NoSuchItem("previous_item_id", *e.Previous)
	}
	if it.ID == "" {
		it.ID = c.ids.New("item")
	} else if old, _ := c.conv.items.Find(it.ID); old != nil {
		return openaiwire.DuplicateItem(it.ID)
	}
	if it.Type == openaiwire.FunctionOutput {
		if c.conv.callName(it.CallID) == "" {
			return openaiwire.Invalid("invalid_tool_call_id", "item.call_id", "Tool call ID '%s' not found in conversation.", it.CallID)
		}
		c.stats.Results.Add(1)
	}
	c.conv.insert(it, at)
	c.tell("conversation.item.added", c.conv.items.Before(it.ID), &it.Item)
	c.tell("conversation.item.done", c.conv.items.Before(it.ID), &it.Item)
	return nil
}

func (c *conn) deleteItem(e *openaiwire.ClientEvent) *openaiwire.Error {
	_, i := c.conv.items.Find(e.ItemID)
	if i < 0 {
		return openaiwire.NoSuchItem("item_id", e.ItemID)
	}
	c.conv.remove(i)
	c.tell("conversation.item.deleted", e.ItemID)
	return nil
}

func (c *conn) retrieve(e *openaiwire.ClientEvent) *openaiwire.Error {
	it, _ := c.conv.items.Find(e.ItemID)
	if it == nil {
		return openaiwire.NoSuchItem("item_id", e.ItemID)
	}
	body, err := withAudio(it)
	if err != nil {
		return openaiwire.Invalid("server_error", "", "The item could not be read.")
	}
	c.tell("conversation.item.retrieved", body)
	return nil
}

// truncate cuts the assistant's speech after the part that the user heard, and removes the transcript, because the
// heard words are unknown.
func (c *conn) truncate(e *openaiwire.ClientEvent) *openaiwire.Error {
	it, _ := c.conv.items.Find(e.ItemID)
	switch {
	case it == nil:
		return openaiwire.NoSuchItem("item_id", e.ItemID)
	case it.Type != openaiwire.Message || it.Role != "assistant":
		return openaiwire.NotSpeech()
	}
	end := time.Duration(e.EndMS) * time.Millisecond
	if end > it.length {
		return openaiwire.Invalid("invalid_value", "", "Audio content of %dms is already shorter than %dms",
			it.length.Milliseconds(), e.EndMS)
	}
	it.cutWords = truncated(cmp.Or(it.Words(), it.cutWords), end, it.length)
	it.length = end
	c.conv.shorten(it, e.EndMS*it.format.BytesPerMS())
	for i := range it.Content {
		it.Content[i].Transcript = nil
	}
	c.tell("conversation.item.truncated", it.ID, e.EndMS)
	return nil
}

func (c *conn) cancelResponse(e *openaiwire.ClientEvent) *openaiwire.Error {
	for _, r := range c.running {
		if e.ResponseID == r.obj.ID || e.ResponseID == "" && !r.aside {
			c.finish(r, openaiwire.Cancelled, "reason", "client_cancelled")
			return nil
		}
	}
	return openaiwire.NotActive()
}
