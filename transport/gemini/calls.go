package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

// maxOpenCalls bounds what a provider can make us remember. The oldest call falls
// out; its result is then dropped.
const maxOpenCalls = 256

// callBook knows the calls that have neither a result nor a cancellation. Recv adds
// and cancels, Send answers.
type callBook struct {
	mu   sync.Mutex // guards the following fields
	made int
	open []*openCall // in the order of arrival
}

type openCall struct {
	call string // our name for it
	id   string // the provider's, may be empty
	name string
	// batch numbers the message that the call came in.
	batch int
	// waits says that the model is silent until it has the result.
	waits bool
	// held is the result of a call without an id that has to wait for an earlier one.
	held json.RawMessage
	// scheduling goes with held.
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

// add remembers a call and names it.
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

// cancel forgets the calls with these ids and returns their names of ours.
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

// result takes the result of call and returns the answers that may now be sent:
// none if the call is cancelled or unknown. The provider matches calls without ids
// by their order, so those of one message wait for each other.
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

// waiting says whether the model waits for the result of a tool.
func (b *callBook) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.open, func(c *openCall) bool { return c.waits })
}

// pairing tells a call that comes both in serverContent and in toolCall (seen in
// the wild: every tool ran twice) from one that the provider repeats. It is told
// about one turn at a time.
type pairing map[string]*[2]int

// The two places a call can come in.
const (
	inContent  = 0
	inToolCall = 1
)

// maxPairs bounds the calls of one turn that are watched for their other half.
const maxPairs = 256

// twin notes a call seen in place and says whether it is the other half of one seen
// already.
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
