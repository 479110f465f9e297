// Package calls is the home of a tool call, by voice and by text: it holds every call that
// is not over, with its state, from the moment that a model asks for it until it has its
// answer. It is pure: no clock, no goroutine, no I/O. What happens to calls is told to a
// [Calls] by its methods, and they return what is to be done. The caller carries that out
// in order: it alone knows turns, speech and the form in which a model is told.
package calls

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/protocol"
	"voicegw/registry"
)

// ConfirmAction is the tool with which a model confirms what the user has agreed to aloud,
// where [Rules.Spoken].
const ConfirmAction = policy.ConfirmAction

// Rules are what differs between conversations.
type Rules struct {
	// Tools are the operator's rules, with the mode.
	Tools policy.Rules
	// Prefix begins the name of each call. A number from 1 follows.
	Prefix string
	// Spoken lets the model confirm with [ConfirmAction] what the user has agreed to aloud.
	Spoken bool
	// Live says that the conversation goes on by itself: it ends questions that are not
	// answered in time. Otherwise the next message finds them.
	Live bool
	// MaxOpen is how many calls may be under way at once, and MaxQuestions how many
	// questions may wait for the user. Zero means no limit but that of Tools.
	MaxOpen, MaxQuestions int
	// ProgressEvery is how often the client is told that a tool is still at work, once it
	// has outlasted its latency budget. Zero means 5 s.
	ProgressEvery time.Duration
}

const (
	// maxParallel is how many tools of one conversation run at once; other calls are queued.
	maxParallel = 4
	// maxResolved is how many questions that were answered are remembered.
	maxResolved = 32
)

// Calls are the calls of one conversation. It is a value: Clone makes a copy that shares
// nothing which a method changes. It is not for concurrent use.
type Calls struct {
	// Fixed after New.
	rules Rules

	book     policy.Book
	open     []call     // in the order in which they were asked for; questions as they were put
	resolved []resolved // questions that were answered, oldest first
	count    int        // names given so far
	strayed  bool       // see Strayed
}

// resolved remembers a question that was answered.
type resolved struct {
	token   string
	outcome Outcome
}

// New returns the Calls of a conversation that holds tools; nil if it holds no tools.
func New(tools *registry.Snapshot, rules Rules) Calls {
	if rules.ProgressEvery == 0 {
		rules.ProgressEvery = 5 * time.Second
	}
	return Calls{rules: rules, book: policy.NewBook(tools, rules.Tools)}
}

// Clone returns a copy that shares nothing which a method changes.
func (c Calls) Clone() Calls {
	c.open, c.resolved = slices.Clone(c.open), slices.Clone(c.resolved)
	return c
}

// Book is what the conversation has used and remembers. Whatever changes it does so
// between the methods of c.
func (c *Calls) Book() *policy.Book { return &c.book }

// NextName gives the next call its name, for a call that the caller answers itself.
func (c *Calls) NextName() string {
	c.count++
	return c.rules.Prefix + strconv.Itoa(c.count)
}

// Count is how many calls have a name.
func (c *Calls) Count() int { return c.count }

// Called is a call as the model made it.
type Called struct {
	// Turn counts from 1.
	Turn int
	// Model is the name that answers it, and Provider the provider's id, empty where it gave
	// none.
	Model, Provider string
	Tool            string
	// Args is what the model wrote, not checked yet.
	Args json.RawMessage
	// SpokenAt is when the user last began to say something, for [ConfirmAction].
	SpokenAt time.Time
	// Message names the call in a message that may be sent again: where the tool has no
	// business key, the same name is the same deed, whatever the model calls it then. Empty
	// for a call that no message repeats.
	Message string
}

// Called takes a call of the model's.
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

// Refuse answers a call of the model's that is not to run.
func (c *Calls) Refuse(at time.Time, in Called, why *registry.Error) []Action {
	k, do := c.begin(at, in)
	return append(do, c.refuse(k, why)...)
}

// begin gives a call its name, and tells the client.
func (c *Calls) begin(at time.Time, in Called) (call, []Action) {
	k := call{
		id: c.NextName(), model: in.Model, provider: in.Provider, tool: in.Tool, runs: in.Tool, turn: in.Turn,
		written: in.Args, message: in.Message, askedAt: at,
	}
	return k, []Action{Tell{&protocol.ToolStarted{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool, Category: c.category(k.tool)}}}
}

func (c *Calls) category(tool string) string { return string(c.book.Category(tool)) }

// Hand decides a call of a tool that the client runs: it counts against the turn's budget,
// and stands in the audit. If it is refused, do is what follows, and there is no record.
func (c *Calls) Hand(at time.Time, in Called) (name string, record audit.Record, do []Action) {
	k, started := c.begin(at, in)
	c.book.Charge(k.tool)
	k.budget = c.book.Told()
	if over := c.book.Exceeded(k.tool); over != nil {
		a := c.answer(&k, *over, false)
		a.OverBudget = true
		return k.id, record, append(started, a)
	}
	var object map[string]json.RawMessage // whatever is wrong within it is the client's to say
	if len(in.Args) > 0 && json.Unmarshal(in.Args, &object) != nil {
		return k.id, record, append(started, c.refuse(k, registry.NewError(registry.ErrorValidation, toolerror.NotAnObject(k.tool)))...)
	}
	k.args = in.Args
	record = c.answer(&k, registry.Envelope{OK: true}, false).Record(at, Effect{NotDelivered: "client"})
	record.Executor = "client"
	return k.id, record, nil
}
