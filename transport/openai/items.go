package openai

import (
	"slices"
	"strconv"
	"sync/atomic"
)

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

// spokenItem is one item with audio.
type spokenItem struct {
	// Fixed when made.
	id       string
	response string
	// Owned by Recv.
	closed bool // AudioDone was emitted
	// bytes of PCM that have arrived, as if at sampleRate: written by Recv, read by Send.
	bytes atomic.Int64
}

// spokenItems are the newest. Only Recv writes them, with conn.mu held, so it may read without the lock.
type spokenItems struct {
	byID  map[string]*spokenItem
	order []string
}

// add makes an item; id is copied once and then shared.
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

// audible bounds ms by the audio of item that has arrived; ok is false for an item without audio.
func (s *spokenItems) audible(item string, ms int64) (int64, bool) {
	it := s.byID[item]
	if it == nil {
		return 0, false
	}
	return max(min(ms, it.bytes.Load()/bytesPerMS), 0), true
}

// forgetOldest makes room for one more entry in m, whose keys order holds by age.
func forgetOldest[V any](m map[string]V, order []string, limit int) []string {
	if len(order) < limit {
		return order
	}
	delete(m, order[0])
	// Keys are moved to the front, so that the array does not grow with every call.
	return append(order[:0], order[1:]...)
}

// texts collects the words of each item. It is owned by Recv.
type texts struct {
	byID  map[string]*[maxParts]string
	order []string
}

// part returns the text of one content part of item, or nil for a number out of range.
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

func (t *texts) add(item string, index int64, delta string) (string, bool) {
	parts, p := t.part(item, index)
	if p == nil {
		return "", false
	}
	*p += clip(delta, max(maxTextBytes-len(*p), 0))
	return whole(parts), true
}

func (t *texts) set(item string, index int64, text string) (string, bool) {
	parts, p := t.part(item, index)
	if p == nil {
		return "", false
	}
	*p = clip(text, maxTextBytes)
	return whole(parts), true
}

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

// callBook lets every call through once; a call is identified by its item and the provider's id. It is owned by Recv.
type callBook struct {
	seen  map[string]struct{}
	order []string
	// unfinished calls have their arguments but have not been reported as done; in order of arrival.
	unfinished []finishedCall
	held       int // bytes of unfinished
	count      int
	given      []finishedCall // calls of the active response that were let through
}

// finishedCall is a call as the provider sent it.
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

func (b *callBook) over() {
	clear(b.unfinished)
	clear(b.given)
	b.unfinished, b.held, b.given = b.unfinished[:0], 0, b.given[:0]
}

func (b *callBook) name() string {
	b.count++
	return "c" + strconv.Itoa(b.count)
}

// hold records a call whose arguments are complete. Calls beyond the limits are dropped.
func (b *callBook) hold(f finishedCall) {
	size := len(f.item) + len(f.id) + len(f.name) + len(f.args)
	if len(b.unfinished) < maxHeld && b.held+size <= maxHeldBytes {
		b.unfinished = append(b.unfinished, f)
		b.held += size
	}
}

// callIDs finds the provider's id of a call that is to be answered. Recv adds and Send takes, with conn.mu held.
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

// take returns the id of a call and forgets it, because a call has one answer.
func (c *callIDs) take(name string) (string, bool) {
	id, ok := c.byName[name]
	if ok {
		delete(c.byName, name)
	}
	return id, ok
}
