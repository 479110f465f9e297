package openai

import (
	"slices"
	"sync/atomic"
	"voicegw/internal/openaiwire"
)

const (
	maxItems = 2000
	maxAudio = 4 << 20  // bytes of audio in all items
	maxWords = 16 << 20 // bytes of everything else
)

// maxHeld bounds the audio of all conversations of a simulator: a load test has a thousand of them and never asks for
// it.
const maxHeld = 64 << 20

// conversation is the list of items. The connection's goroutine owns it.
type conversation struct {
	id    string
	items openaiwire.List[*item]
	audio int // bytes of audio kept
	// held is the total that all conversations keep, at most maxHeld; nil if this is the only one.
	held  *atomic.Int64
	words int // bytes of everything else
}

func (c *conversation) insert(it *item, at int) {
	c.items = slices.Insert(c.items, at, it)
	c.hold(len(it.audio))
	c.words += it.Size
	if it.Type == openaiwire.Message && it.Role == "assistant" && !it.answered {
		// A client replays history: the items before this one are answered.
		for _, old := range c.items[:at] {
			old.answered = true
		}
	}
	c.trim()
}

// hold adds bytes to the stored audio; a negative number removes them.
func (c *conversation) hold(bytes int) {
	c.audio += bytes
	if c.held != nil {
		c.held.Add(int64(bytes))
	}
}

func (c *conversation) full() bool {
	return c.audio > maxAudio || c.held != nil && c.held.Load() > maxHeld
}

// keep stores the audio of a growing item, unless an earlier part had no room.
func (c *conversation) keep(it *item, data []byte) {
	if it.cut = it.cut || len(it.audio)+len(data) > maxAudio/2; it.cut {
		return
	}
	it.audio = append(it.audio, data...)
	c.hold(len(data))
	c.trim()
}

func (c *conversation) shorten(it *item, bytes int) {
	if bytes < len(it.audio) {
		c.hold(bytes - len(it.audio))
		it.audio = it.audio[:bytes:bytes]
	}
}

func (c *conversation) end() { c.hold(-c.audio) }

func (c *conversation) trim() {
	for i := 0; c.full() && i < len(c.items); i++ {
		if it := c.items[i]; len(it.audio) > 0 {
			c.hold(-len(it.audio))
			it.audio, it.cut = nil, true
		}
	}
	for len(c.items) > maxItems || c.words > maxWords && len(c.items) > 1 {
		c.remove(0)
	}
}

func (c *conversation) remove(i int) {
	c.hold(-len(c.items[i].audio))
	c.words -= c.items[i].Size
	c.items = slices.Delete(c.items, i, i+1)
}

func (c *conversation) callName(callID string) string {
	for i := len(c.items) - 1; i >= 0; i-- {
		if it := c.items[i]; it.Type == openaiwire.FunctionCall && it.CallID == callID {
			return it.Name
		}
	}
	return ""
}

// pending returns the items that no response has taken into account yet, in order, and marks them as taken.
func (c *conversation) pending() (results []*item, said []*item) {
	for _, it := range c.items {
		if it.answered {
			continue
		}
		it.answered = true
		switch {
		case it.Type == openaiwire.FunctionOutput:
			results = append(results, it)
		case it.Type == openaiwire.Message && it.Role == "user":
			said = append(said, it)
		}
	}
	return results, said
}
