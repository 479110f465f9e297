package openai

import (
	"slices"
	"strconv"
	"sync/atomic"
)

// Bounds of what a connection remembers. The oldest goes first.
const (
	maxSpoken    = 128      // spoken items, for Truncate
	maxTexts     = 64       // items whose text is still put together
	maxTextBytes = 64 << 10 // text of one content part
	maxParts     = 8        // content parts of one item
	maxCalls     = 1024     // calls that may still be answered or repeated
	maxHeld      = 128      // calls of a response that is not done
	maxHeldBytes = 1 << 20  // of those
	maxMuted     = 32       // responses of which nothing more is given out
)

// spokenItem is one item with audio.
type spokenItem struct {
	// Fixed when made.
	id       string
	response string
	// Owned by Recv.
	closed bool // AudioDone was given out
	// bytes of PCM that have arrived: written by Recv, read by Send.
	bytes atomic.Int64
}

// spokenItems remembers the newest spoken items. Only Recv writes it, with conn.mu
// held; so Recv may read it without.
type spokenItems struct {
	byID  map[string]*spokenItem
	order []string
}

// add makes an item; id is copied once and shared by all that follows.
func (s *spokenItems) add(id, response string) *spokenItem {
	if s.byID == nil {
		s.byID = make(map[string]*spokenItem)
	}
	s.order = forgetOldest(s.byID, s.order, maxSpoken)
	it := &spokenItem{id: id, response: response}
	s.byID[id] = it
	s.order = append(s.order, id)
	return it
}

// audible returns ms, or how much audio of item has arrived if that is less; ok is
// false for an item without any.
func (s *spokenItems) audible(item string, ms int64) (int64, bool) {
	it := s.byID[item]
	if it == nil {
		return 0, false
	}
	return max(min(ms, it.bytes.Load()/bytesPerMS), 0), true
}

// forgetOldest makes room for one more in m, whose keys order holds by age.
func forgetOldest[V any](m map[string]V, order []string, limit int) []string {
	if len(order) < limit {
		return order
	}
	delete(m, order[0])
	// Moved to the front, so that the array does not grow with every call.
	return append(order[:0], order[1:]...)
}

// texts puts together what is said in each item. It is owned by Recv.
type texts struct {
	byID  map[string]*[maxParts]string
	order []string
}

// part returns the text of one content part of item, or nil for a number that no
// item has.
func (t *texts) part(item string, index int64) (*[maxParts]string, *string) {
	if index < 0 || index >= maxParts {
		return nil, nil
	}
	parts := t.byID[item]
	if parts == nil {
		if t.byID == nil {
			t.byID = make(map[string]*[maxParts]string)
		}
		t.order = forgetOldest(t.byID, t.order, maxTexts)
		parts = new([maxParts]string)
		t.byID[item] = parts
		t.order = append(t.order, item)
	}
	return parts, &parts[index]
}

// add appends delta and returns the whole text of the item.
func (t *texts) add(item string, index int64, delta string) (string, bool) {
	parts, p := t.part(item, index)
	if p == nil {
		return "", false
	}
	*p += clip(delta, max(maxTextBytes-len(*p), 0))
	return whole(parts), true
}

// set replaces the text of one part by its final form and returns the whole text.
func (t *texts) set(item string, index int64, text string) (string, bool) {
	parts, p := t.part(item, index)
	if p == nil {
		return "", false
	}
	*p = clip(text, maxTextBytes)
	return whole(parts), true
}

// get returns what is known of item.
func (t *texts) get(item string) string {
	if parts := t.byID[item]; parts != nil {
		return whole(parts)
	}
	return ""
}

func whole(parts *[maxParts]string) string {
	s := parts[0]
	for _, p := range parts[1:] {
		s += p
	}
	return s
}

// callBook lets every call through once: its item and the provider's id make it. It
// is owned by Recv.
type callBook struct {
	seen  map[string]struct{}
	order []string
	// unfinished calls have their arguments but not yet the word that they are done;
	// in the order they came.
	unfinished []finishedCall
	held       int // bytes of them
	count      int
	given      []finishedCall // those of the response under way that have been let through
}

// finishedCall is a call as the provider gave it.
type finishedCall struct{ item, id, name, args string }

// key tells one call of one item from all others; a NUL is in no id.
func (f finishedCall) key() string { return f.item + "\x00" + f.id }

// whole says that nothing of the call is missing, as a field of another JSON type is.
func (f finishedCall) whole() bool {
	return f.item != "" && f.id != "" && f.name != "" && f.args != ""
}

// maybe says that two accounts of a call may be of the same one, as nothing that both tell
// differs.
func (f finishedCall) maybe(other finishedCall) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(f.item, other.item) && same(f.id, other.id) && same(f.name, other.name)
}

// first says whether this call is new, and notes it. One that lacks something is new only if
// it can be none of those that the response has had.
func (b *callBook) first(f finishedCall) bool {
	if !f.whole() && slices.ContainsFunc(b.given, f.maybe) {
		return false
	}
	if _, again := b.seen[f.key()]; again {
		return false
	}
	if b.seen == nil {
		b.seen = make(map[string]struct{})
	}
	b.order = forgetOldest(b.seen, b.order, maxCalls)
	b.seen[f.key()] = struct{}{}
	b.order = append(b.order, f.key())
	if len(b.given) < maxHeld {
		b.given = append(b.given, finishedCall{item: f.item, id: f.id, name: f.name})
	}
	return true
}

// over forgets what belongs to the response that has ended.
func (b *callBook) over() {
	clear(b.unfinished)
	clear(b.given)
	b.unfinished, b.held, b.given = b.unfinished[:0], 0, b.given[:0]
}

// name makes the adapter's own name of a call.
func (b *callBook) name() string {
	b.count++
	return "c" + strconv.Itoa(b.count)
}

// hold notes a call whose arguments are complete. What is too much is left out.
func (b *callBook) hold(f finishedCall) {
	size := len(f.item) + len(f.id) + len(f.name) + len(f.args)
	if len(b.unfinished) < maxHeld && b.held+size <= maxHeldBytes {
		b.unfinished = append(b.unfinished, f)
		b.held += size
	}
}

// callIDs finds the provider's id of a call to be answered. Recv adds and Send
// takes, with conn.mu held.
type callIDs struct {
	byName map[string]string
	order  []string
}

func (c *callIDs) add(name, id string) {
	if c.byName == nil {
		c.byName = make(map[string]string)
	}
	c.order = forgetOldest(c.byName, c.order, maxCalls)
	c.byName[name] = id
	c.order = append(c.order, name)
}

// take returns the id of a call and forgets it: a call has one answer.
func (c *callIDs) take(name string) (string, bool) {
	id, ok := c.byName[name]
	if ok {
		delete(c.byName, name)
	}
	return id, ok
}
