// Package calls is the home of a tool call, by voice and by text. It holds every open call and
// its state, from the moment the model asks for it until it is answered. The package is pure:
// no clock, no goroutine, no I/O. The caller reports what happens to calls through the methods
// of [Calls], and they return the actions that follow. The caller carries them out in order: it
// alone knows about turns, speech and how a model is told.
package calls

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/protocol"
	"voicegw/registry"
)

// ConfirmAction is the tool with which a model reports that the user has agreed aloud. It
// exists only if [Rules.Spoken] is set.
const ConfirmAction = policy.ConfirmAction

// Rules are the settings that differ between conversations.
type Rules struct {
	// Tools are the operator's rules for tools, and the mode.
	Tools policy.Rules
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

	book     policy.Book
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
	return Calls{rules: rules, prefix: rules.Prefix, book: policy.NewBook(tools, &rules.Tools)}
}

// Clone returns a copy that shares nothing that a method changes.
func (c Calls) Clone() Calls {
	c.open, c.resolved = slices.Clone(c.open), slices.Clone(c.resolved)
	return c
}

// Book returns the conversation's account of tool use and its remembered answers. The caller
// may change it, but only between calls of c's methods.
func (c *Calls) Book() *policy.Book { return &c.book }

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

// Called is a tool call as the model made it.
type Called struct {
	// Turn is the number of the turn, counted from 1.
	Turn int
	// Model is the name under which the model expects the answer, Provider the provider's id for
	// the call; Provider is empty if the provider gave none.
	Model, Provider string
	Tool            string
	// Args is what the model wrote; it has not been checked.
	Args json.RawMessage
	// SpokenAt is when the user last began to speak or typed something, for [ConfirmAction].
	SpokenAt time.Time
	// Message identifies the call within a message that a client may send again. If the tool has
	// no business key, calls with the same Message are the same deed, even if the model writes
	// them differently the second time. Empty for a call that is not repeated in this way.
	Message string
}

// Called takes a call that the model has made and decides what happens to it.
func (c *Calls) Called(at time.Time, in Called) []Action {
	k, do := c.begin(at, in)
	switch {
	case c.rules.Spoken && in.Tool == ConfirmAction:
		return append(do, c.confirmAction(k, in.SpokenAt)...)
	case c.rules.MaxOpen > 0 && c.UnderWay() >= c.rules.MaxOpen:
		return append(do, c.refuse(k, registry.NewError(registry.ErrorRateLimit, toolerror.TooManyCalls()))...)
	default:
		return append(do, c.decide(at, k)...)
	}
}

// Refuse answers a call of the model with an error, without running it.
func (c *Calls) Refuse(at time.Time, in Called, why *registry.Error) []Action {
	k, do := c.begin(at, in)
	return append(do, c.refuse(k, why)...)
}

// begin names a call and tells the client about it.
func (c *Calls) begin(at time.Time, in Called) (call, []Action) {
	k := call{
		id: c.NextName(), by: c.book.Agent(), tools: c.book.Tools(), model: in.Model, provider: in.Provider, tool: in.Tool, runs: in.Tool, turn: in.Turn,
		written: in.Args, message: in.Message, askedAt: at,
	}
	return k, []Action{Tell{&protocol.ToolStarted{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool, Category: c.category(k.tool)}}}
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
		return k.id, record, append(started, c.refuse(k, registry.NewError(registry.ErrorValidation, toolerror.NotAnObject(k.tool)))...)
	}
	k.args = in.Args
	record = c.answer(&k, registry.Envelope{OK: true}, false).Record(at, Effect{NotDelivered: "client"})
	record.Executor = "client"
	return k.id, record, nil
}
