package openai

import "slices"

// Bounds of what a conversation keeps.
const (
	maxItems = 2000
	maxAudio = 4 << 20  // bytes of audio in all items: a load test has a thousand conversations
	maxWords = 16 << 20 // bytes of everything else in them
)

// conversation is the list of items. The connection's goroutine owns it.
type conversation struct {
	id    string
	items []*item
	audio int // bytes of audio kept
	words int // bytes of everything else
	// spoken says that the assistant has spoken.
	spoken bool
}

// find is the item of that id, or nil, and its place.
func (c *conversation) find(id string) (*item, int) {
	for i, it := range c.items {
		if it.id == id {
			return it, i
		}
	}
	return nil, -1
}

// before is the id of the item before it, nil when it is the first or unknown.
func (c *conversation) before(it *item) *string {
	if i := slices.Index(c.items, it); i > 0 {
		return &c.items[i-1].id
	}
	return nil
}

// last is the id of the last item, nil when there is none.
func (c *conversation) last() *string {
	if len(c.items) == 0 {
		return nil
	}
	return &c.items[len(c.items)-1].id
}

// insert puts an item at a place; -1 is the end.
func (c *conversation) insert(it *item, at int) {
	if at < 0 || at > len(c.items) {
		at = len(c.items)
	}
	c.items = slices.Insert(c.items, at, it)
	c.audio += len(it.audio)
	c.words += it.size
	if it.kind == kindMessage && it.role == "assistant" && !it.answered {
		// History that a client replays: what came before it is answered.
		for _, old := range c.items[:at] {
			old.answered = true
		}
	}
	c.trim()
}

// keep stores the audio of an item that grew.
func (c *conversation) keep(it *item, data []byte) {
	if len(it.audio)+len(data) > maxAudio/2 {
		return
	}
	it.audio = append(it.audio, data...)
	c.audio += len(data)
	c.trim()
}

// trim forgets the oldest audio and the oldest items beyond the bounds.
func (c *conversation) trim() {
	for i := 0; c.audio > maxAudio && i < len(c.items); i++ {
		c.audio -= len(c.items[i].audio)
		c.items[i].audio = nil
	}
	for len(c.items) > maxItems || c.words > maxWords && len(c.items) > 1 {
		c.remove(0)
	}
}

func (c *conversation) remove(i int) {
	c.audio -= len(c.items[i].audio)
	c.words -= c.items[i].size
	c.items = slices.Delete(c.items, i, i+1)
}

// callName is the name of the call with that id.
func (c *conversation) callName(callID string) string {
	for i := len(c.items) - 1; i >= 0; i-- {
		if it := c.items[i]; it.kind == kindCall && it.callID == callID {
			return it.name
		}
	}
	return ""
}

// pending are the items that no response has taken into account yet, in order,
// and marks them as taken.
func (c *conversation) pending() (results []*item, said []*item) {
	for _, it := range c.items {
		if it.answered {
			continue
		}
		it.answered = true
		switch {
		case it.kind == kindOutput:
			results = append(results, it)
		case it.kind == kindMessage && it.role == "user":
			said = append(said, it)
		}
	}
	return results, said
}
