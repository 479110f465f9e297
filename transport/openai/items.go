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
		n.order = append(n.order[:0], n.order[1:]...) // so that the array does not grow with every call
	}
	n.by[key] = v
	n.order = append(n.order, key)
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
