// Package calls decides about tool calls, by voice and by text. [Calls] holds every open call and its state from the
// model's request to the answer; a [Book] holds budgets, answers and unapproved questions. The package is pure: no clock, no
// goroutine, no I/O. The caller reports events through the methods of Calls and carries out the actions they return, in
// order. Only the caller knows about turns, speech and the model's connection.
package calls

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/prompts"
	"voicegw/registry"
)

// Rules are the settings that differ between conversations.
type Rules struct {
	// Tools are the operator's rules for tools, and the mode.
	Tools Policy
	// Prefix starts the name of each call; a number, counted from 1, follows it.
	Prefix string
	// Spoken lets the model confirm with [ConfirmAction] what the user has agreed to aloud.
	Spoken bool
	// Live means that [Calls.Tick] is called as time passes, and ends questions that nobody
	// answers in time. Otherwise the next message finds out that they have expired.
	Live bool
	// MaxOpen is how many calls may be under way at once, and MaxQuestions how many questions
	// may wait for the user. Zero means no limit beyond those in Tools.
	MaxOpen, MaxQuestions int
	// ProgressEvery is how often the client is told that a tool is still running, once it has
	// exceeded its latency budget. Zero means 5 s.
	ProgressEvery time.Duration
}

const (
	// maxParallel is how many tools of one conversation run at once; further calls are queued.
	maxParallel = 4
	// maxResolved is how many answered questions are remembered.
	maxResolved = 32
)

// Calls holds the calls of one conversation. It is a value: Clone makes an independent copy.
// It is not safe for concurrent use.
type Calls struct {
	// Fixed after New.
	rules *Rules

	book     Book
	open     []call     // in the order of the model's calls; a question in the order in which it was put
	resolved []resolved // answered questions, oldest first
	lost     []OpenCall // calls that write of another process; see Restore. Immutable after it
	count    int        // number of names given so far
	prefix   string     // of the next names
	strayed  bool       // see Strayed
}

// resolved is a question that was answered.
type resolved struct {
	token   string
	outcome Outcome
}

// New returns the Calls of a conversation with these tools; tools is nil if it has none.
// The rules, which many conversations may share, must not change any more.
func New(tools *registry.Snapshot, rules *Rules) Calls {
	return Calls{rules: rules, prefix: rules.Prefix, book: NewBook(tools, &rules.Tools)}
}

// Clone returns a copy that shares nothing that a method changes.
func (c Calls) Clone() Calls {
	c.open, c.resolved = slices.Clone(c.open), slices.Clone(c.resolved)
	return c
}

// Book returns the conversation's account of tool use and its remembered answers. The caller
// may change it, but only between calls of c's methods.
func (c *Calls) Book() *Book { return &c.book }

// NextName returns the next call's name, for a call that the caller answers itself.
func (c *Calls) NextName() string {
	c.count++
	return c.prefix + strconv.Itoa(c.count)
}

// Count returns how many calls have been named.
func (c *Calls) Count() int { return c.count }

// Named reports whether a call has, or may have had, that name: names of calls that another process has
// made are not known here.
func (c *Calls) Named(name string) bool {
	rest, ok := strings.CutPrefix(name, c.rules.Prefix)
	if !ok || c.prefix != c.rules.Prefix {
		return ok
	}
	n, err := strconv.Atoi(rest)
	return err == nil && n >= 1 && n <= c.count
}

func (c *Calls) category(tool string) string { return string(c.book.Category(tool)) }

// Hand decides about a call of a tool that the client runs: it counts against the turn's
// budget and is audited. If it is refused, do holds the actions that follow, and record is
// empty.
func (c *Calls) Hand(at time.Time, in Called) (name string, record audit.Record, do []Action) {
	k, started := c.begin(at, in)
	c.book.Charge(k.tool)
	k.budget = c.book.Told()
	if over := c.book.Exceeded(k.tool); over != nil {
		a := c.answer(&k, *over, false)
		a.OverBudget = true
		return k.id, record, append(started, a)
	}
	var object map[string]json.RawMessage // only the client can check what is inside
	if len(in.Args) > 0 && (json.Unmarshal(in.Args, &object) != nil || object == nil) {
		return k.id, record, append(started, c.refuse(k, registry.NewError(registry.ErrorValidation, prompts.NotAnObject(k.tool)))...)
	}
	k.args = in.Args
	record = c.answer(&k, registry.Envelope{OK: true}, false).Record(at, Effect{NotDelivered: "client"})
	record.Executor = "client"
	return k.id, record, nil
}
