package gemini

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

// maxOpenCalls bounds the remembered calls. An answered one is dropped first, then the oldest; its result is not sent.
const maxOpenCalls = 256

// callBook maps the caller's answers to the wire. An ID is one wait, however often it is announced: the first answer,
// or a cancellation, ends it. Recv adds and cancels calls; Send answers them.
type callBook struct {
	mu   sync.Mutex // guards the following fields
	made int
	open []*openCall // in the order of arrival
}

type openCall struct {
	calls []string // our names for it, one for each announcement that has no answer
	id    string   // the provider's; may be empty
	name  string
	// batch is the number of the message that contained the call.
	batch int
	// waits means that the model is silent until it has the result.
	waits bool
	// answered: the provider has an answer. Further announcements get theirs: one id may be used for different calls.
	answered bool
	// held is the result of a call without an id; it must wait for an earlier call's result.
	held json.RawMessage
	// scheduling belongs to held.
	scheduling string
}

type answer struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	// Scheduling is INTERRUPT, WHEN_IDLE or SILENT; empty leaves it to the model.
	Scheduling string `json:"scheduling,omitempty"`
}

func (b *callBook) add(id, name string, batch int, waits bool) (call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	call = "call_" + strconv.Itoa(b.made)
	if id != "" {
		for _, c := range b.open {
			if c.id == id && !c.answered && len(c.calls) < maxOpenCalls {
				c.calls = append(c.calls, call)
				return call
			}
		}
	}
	if len(b.open) == maxOpenCalls {
		oldest := max(slices.IndexFunc(b.open, func(c *openCall) bool { return c.answered }), 0)
		b.open = slices.Delete(b.open, oldest, oldest+1)
	}
	b.open = append(b.open, &openCall{calls: []string{call}, id: id, name: name, batch: batch, waits: waits})
	return call
}

// identify sets a call's id that came later, unless results already wait for each other by their order.
func (b *callBook) identify(call, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.index(call)
	if at < 0 || b.open[at].id != "" {
		return
	}
	c := b.open[at]
	if !slices.ContainsFunc(b.open, func(o *openCall) bool { return o.batch == c.batch && o.held != nil }) {
		c.id = id
	}
}

// index finds the call with that name; negative if it is missing. The caller must hold mu.
func (b *callBook) index(call string) int {
	return slices.IndexFunc(b.open, func(c *openCall) bool { return slices.Contains(c.calls, call) })
}

func (b *callBook) cancel(ids []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var calls []string
	b.open = slices.DeleteFunc(b.open, func(c *openCall) bool {
		gone := c.id != "" && slices.Contains(ids, c.id)
		if gone {
			calls = append(calls, c.calls...)
		}
		return gone
	})
	return calls
}

// result returns the answers that may be sent now, none for an unknown call. The provider matches calls without ids by
// their order, so the results of one message wait for each other.
func (b *callBook) result(call string, output json.RawMessage, scheduling string) []answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.index(call)
	if at < 0 {
		return nil
	}
	c := b.open[at]
	if c.id != "" {
		c.answered = true
		c.calls = slices.DeleteFunc(c.calls, func(name string) bool { return name == call })
		if len(c.calls) == 0 {
			b.open = slices.Delete(b.open, at, at+1)
		}
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

func (b *callBook) unanswered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.open, func(c *openCall) bool { return !c.answered })
}

func (b *callBook) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.open, func(c *openCall) bool { return c.waits && !c.answered })
}

// pairing distinguishes a call that comes both in serverContent and in toolCall (seen in practice: every tool ran
// twice) from a call that the provider repeats. It holds the calls of one turn whose other half has not come.
type pairing []announced

type announced struct {
	functionCall
	place int
	call  string // our name for it
}

// The two places where a call can occur.
const (
	inContent  = 0
	inToolCall = 1
)

// maxPairs bounds the calls of one turn whose other half is awaited.
const maxPairs = 256

// twin removes the first half of a call with another place. A provider may give the ID in only one place.
func (p *pairing) twin(place int, c functionCall) (first announced, ok bool) {
	for i, a := range *p {
		if a.place != place && a.same(c) {
			*p = slices.Delete(*p, i, i+1)
			return a, true
		}
	}
	return first, false
}

func (p *pairing) note(a announced) {
	if len(*p) < maxPairs {
		*p = append(*p, a)
	}
}

// same compares ids or, where one half has none, names and arguments.
func (c functionCall) same(other functionCall) bool {
	if c.ID != "" && other.ID != "" {
		return c.ID == other.ID
	}
	return c.Name == other.Name && sameJSON(c.Args, other.Args)
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(text []byte) (value any, ok bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return value, d.Decode(&value) == nil
	}
	x, ok := read(a)
	y, too := read(b)
	return ok && too && reflect.DeepEqual(x, y)
}
