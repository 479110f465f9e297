package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

// maxOpenCalls bounds how many calls of a provider are remembered. The oldest call is
// dropped, and so is its result.
const maxOpenCalls = 256

// callBook holds the calls that have neither a result nor a cancellation. Recv adds
// and cancels calls; Send answers them.
type callBook struct {
	mu   sync.Mutex // guards the following fields
	made int
	open []*openCall // in the order of arrival
}

type openCall struct {
	call string // our name for it
	id   string // the provider's, may be empty
	name string
	// batch is the number of the message that contained the call.
	batch int
	// waits means that the model is silent until it has the result.
	waits bool
	// held is the result of a call without an id; it must wait for an earlier call's result.
	held json.RawMessage
	// scheduling belongs to held.
	scheduling string
}

// answer is one functionResponse.
type answer struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	// Scheduling is INTERRUPT, WHEN_IDLE or SILENT; empty leaves it to the model.
	Scheduling string `json:"scheduling,omitempty"`
}

// add remembers a call and gives it a name.
func (b *callBook) add(id, name string, batch int, waits bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	c := &openCall{call: "call_" + strconv.Itoa(b.made), id: id, name: name, batch: batch, waits: waits}
	if len(b.open) == maxOpenCalls {
		b.open = slices.Delete(b.open, 0, 1)
	}
	b.open = append(b.open, c)
	return c.call
}

// cancel forgets the calls with these ids and returns our names for them.
func (b *callBook) cancel(ids []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var calls []string
	b.open = slices.DeleteFunc(b.open, func(c *openCall) bool {
		gone := c.id != "" && slices.Contains(ids, c.id)
		if gone {
			calls = append(calls, c.call)
		}
		return gone
	})
	return calls
}

// result takes the result of call and returns the answers that may be sent now;
// it returns none if the call is cancelled or unknown. The provider matches calls without
// ids by their order, so the results of one message wait for each other.
func (b *callBook) result(call string, output json.RawMessage, scheduling string) []answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.open, func(c *openCall) bool { return c.call == call })
	if at < 0 {
		return nil
	}
	c := b.open[at]
	if c.id != "" {
		b.open = slices.Delete(b.open, at, at+1)
		return []answer{{ID: c.id, Name: c.name, Response: output, Scheduling: scheduling}}
	}
	c.held, c.scheduling = output, scheduling
	var ready []answer
	waiting := false
	b.open = slices.DeleteFunc(b.open, func(o *openCall) bool {
		if o.id != "" || o.batch != c.batch {
			return false
		}
		waiting = waiting || o.held == nil
		if waiting {
			return false
		}
		ready = append(ready, answer{Name: o.name, Response: o.held, Scheduling: o.scheduling})
		return true
	})
	return ready
}

// unanswered says whether a call has no result yet, whether the model waits for it or not.
func (b *callBook) unanswered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 0
}

// waiting reports whether the model waits for a tool's result.
func (b *callBook) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.open, func(c *openCall) bool { return c.waits })
}

// pairing distinguishes a call that comes both in serverContent and in toolCall (seen in
// practice: every tool ran twice) from a call that the provider repeats. It covers
// one turn at a time.
type pairing map[string]*[2]int

// The two places where a call can occur.
const (
	inContent  = 0
	inToolCall = 1
)

// maxPairs bounds the calls of one turn whose other half is awaited.
const maxPairs = 256

// twin notes a call seen in place and reports whether it is the other half of a call
// that was seen before.
func (p pairing) twin(place int, c functionCall) bool {
	key := c.ID
	if key == "" {
		key = c.Name + "\x00" + string(c.Args)
	}
	seen := p[key]
	if seen == nil {
		if len(p) >= maxPairs {
			return false
		}
		seen = new([2]int)
		p[key] = seen
	}
	seen[place]++
	return seen[place] <= seen[1-place]
}
