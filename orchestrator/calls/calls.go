// Package calls makes the decisions about tool calls, in voice and in text. [Calls] holds every open call from the
// model's request to the answer; a [Book] holds budgets, answers and unapproved questions. The package is pure: no
// clock, no goroutine, no I/O. The caller reports events through the methods of Calls and carries out the returned
// actions in order. Turns, speech and the model's connection are the caller's concern.
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

// Rules are the settings of a conversation.
type Rules struct {
	Tools  Policy // the operator's rules for tools, and the mode
	Prefix string // starts the name of each call; a number from 1 follows
	Spoken bool   // lets the model report a spoken approval with [ConfirmAction]
	Keypad bool   // the user is on the phone and approves by pressing keys
	Live   bool   // the caller calls [Calls.Tick], which expires questions; otherwise the next message finds them expired
	// MaxOpen limits the open calls, MaxQuestions the open questions. Zero means no limit beyond those in Tools.
	MaxOpen, MaxQuestions int
	// Claims are the languages in which claims of the assistant are checked; see [Calls.Unmatched].
	Claims ClaimLanguages
}

// ProgressEvery is the interval of tool.progress once a tool has exceeded its latency budget.
const ProgressEvery = 5 * time.Second

const (
	maxParallel = 4 // limits the tools of a conversation that run at once; further calls are queued
	maxResolved = 32
)

// Calls holds the calls of one conversation. It is a value; see Clone. It is not safe for concurrent use.
type Calls struct {
	rules *Rules // fixed after New

	openCalls
	book     Book
	resolved []resolved // answered questions, oldest first
	past     *past      // nil for an empty one; never changed in place
	count    int        // names given so far
	prefix   string     // prefix of the next names
	strayed  bool       // see Strayed
}

// past is a conversation's memory of finished calls. Most have none.
type past struct {
	lost    []OpenCall    // another process's writing calls; see Restore
	effects []ClaimEffect // oldest first
}

func (c *Calls) before() past {
	if c.past == nil {
		return past{}
	}
	return *c.past
}

// openCalls has the calls without a final result, in the order of the model's calls; questions in the order they were
// asked.
type openCalls struct{ open []call }

type resolved struct {
	token   string
	outcome Outcome
}

// New returns the Calls of a conversation. tools may be nil. Conversations may share rules, which must not change.
func New(tools *registry.Snapshot, rules *Rules) Calls {
	return Calls{rules: rules, prefix: rules.Prefix, book: NewBook(tools, &rules.Tools)}
}

// Clone returns an independent copy.
func (c Calls) Clone() Calls {
	c.open, c.resolved = slices.Clone(c.open), slices.Clone(c.resolved)
	return c
}

// Book returns the conversation's budget and stored answers. The caller may change it between calls of c's methods.
func (c *Calls) Book() *Book { return &c.book }

// NextName names a call that the caller answers itself.
func (c *Calls) NextName() string {
	c.count++
	return c.prefix + strconv.Itoa(c.count)
}

// Count returns how many calls have been named.
func (c *Calls) Count() int { return c.count }

// Named reports whether a call has, or may have had, that name. Names given by another process are unknown here.
func (c *Calls) Named(name string) bool {
	rest, ok := strings.CutPrefix(name, c.rules.Prefix)
	if !ok || c.prefix != c.rules.Prefix {
		return ok
	}
	n, err := strconv.Atoi(rest)
	return err == nil && n >= 1 && n <= c.count
}

func (c *Calls) category(tool string) string { return string(toolOf(c.book.tools, tool).Category) }

// ClientCall decides about a call of a tool that the client runs. If it is refused, record is empty and do follows.
func (c *Calls) ClientCall(at time.Time, in Called) (name string, record audit.Record, do []Action) {
	k, started := c.begin(at, in)
	c.book.Charge(c.book.tools, k.tool)
	k.budget = c.book.Usage()
	if over := c.book.Exceeded(c.book.tools, k.tool); over != nil {
		a := c.answer(&k, *over, false)
		a.OverBudget = true
		return k.id, record, append(started, a)
	}
	var object map[string]json.RawMessage // only the client can check its values
	if len(in.Args) > 0 && (json.Unmarshal(in.Args, &object) != nil || object == nil) {
		return k.id, record, append(started, c.refuse(k, registry.NewError(registry.ErrorValidation, prompts.NotAnObject(k.tool)))...)
	}
	k.args = in.Args
	record = c.answer(&k, registry.Envelope{OK: true}, false).Record(at, Effect{NotDelivered: "client"})
	record.Executor = "client"
	return k.id, record, nil
}
