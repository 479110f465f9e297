package policy

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts/toolerror"
	"voicegw/registry"
)

// Keys are the names under which a call is the same call, and a deed the same deed.
type Keys struct {
	// Idempotency is "provider:…", "hash:…" or "confirmation:…".
	Idempotency string
	// Business is the tool's own key over the arguments, unique within the tool; empty
	// if the tool has none.
	Business string
}

// Stored is a good answer that is given again to a call that asks for the same.
type Stored struct {
	Keys Keys
	Tool string
	// Asked are the call's arguments as the model wrote them, in canonical form.
	Asked    string
	Envelope registry.Envelope
	Turn     int
}

// maxAnswers and maxAnswerBytes bound what a conversation remembers of its calls.
const (
	maxAnswers     = 100
	maxAnswerBytes = 4 << 20
)

// Book is what a conversation remembers of calls that are over: what its turn has used,
// the good answers, and the questions that nobody has approved. It is a value: a copy of it
// stays as it was when another copy is changed. It is not for concurrent use.
type Book struct {
	// Fixed after NewBook.
	tools *registry.Snapshot // nil: there are no tools
	rules Rules

	account Account
	stored  []Stored // oldest first
	// unapproved are the questions that nobody has approved, oldest first.
	unapproved []unapproved
}

// NewBook returns the Book of a conversation that holds tools.
func NewBook(tools *registry.Snapshot, rules Rules) Book {
	rules.Budget = rules.Budget.Or(DefaultBudget(rules.Mode))
	rules.Questions = rules.Questions.withDefaults()
	return Book{tools: tools, rules: rules}
}

// Tools is the snapshot that the conversation holds; nil if there are no tools.
func (b *Book) Tools() *registry.Snapshot { return b.tools }

// Mode is that of the conversation.
func (b *Book) Mode() registry.Mode { return b.rules.Mode }

// Budget is what each turn may use.
func (b *Book) Budget() Budget { return b.rules.Budget }

// Account is what the turn has used so far.
func (b *Book) Account() Account { return b.account }

// Told is the account beside its budget, as the model and the audit are told it.
func (b *Book) Told() json.RawMessage { return b.account.Encode(b.rules.Budget) }

// Slow says whether the tools of the turn have taken longer than they should together.
func (b *Book) Slow() bool { return b.account.slow(b.rules.Budget) }

// BeginTurn gives the calls that follow a new budget: the user has said something. Their
// answer to a question is no such turn; it goes on with the budget of the one before.
func (b *Book) BeginTurn() {
	b.account = Account{}
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		b.unapproved[i].Before = true
	}
}

// Prepare finds the tool, checks the arguments and lowers those that are above a limit. If
// the call cannot run, the Envelope is its answer.
func (b *Book) Prepare(tool string, args registry.Arguments) (*registry.Prepared, *registry.Envelope) {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		return nil, &env
	}
	p, refusal := b.tools.PrepareDecoded(tool, b.rules.Mode, args)
	if p == nil {
		return nil, refusal
	}
	var limits map[string]int // the mode's own
	if p.Tool().Category == registry.CategoryRetrieval {
		limits = map[string]int{"top_k": b.rules.Budget.TopK}
	}
	p.Clamp(limits)
	return p, nil
}

// Confirms says whether a person has to approve a call of the tool.
func (b *Book) Confirms(t *registry.Tool) bool {
	return t.RequiresConfirmation || slices.Contains(b.rules.Confirm, t.ToolID)
}

// Charge counts a call of the tool in the turn, whatever becomes of it.
func (b *Book) Charge(tool string) {
	b.account.Total++
	if b.Category(tool) == registry.CategoryRetrieval {
		b.account.Retrieval++
	}
}

// Exceeded is the answer to the call that was charged last, if that is more than the turn
// may have: it tells the model to speak. It is nil within the budget.
func (b *Book) Exceeded(tool string) *registry.Envelope {
	limit, used := b.rules.Budget, "tool calls"
	n := limit.Total
	if b.account.Total <= limit.Total {
		if b.Category(tool) != registry.CategoryRetrieval || b.account.Retrieval <= limit.Retrieval {
			return nil
		}
		used, n = "retrieval calls", limit.Retrieval
	}
	env := b.Refuse(tool, registry.NewError(registry.ErrorBudgetExceeded, toolerror.BudgetUsedUp(used, n, tool)))
	env.Meta.Budget = b.Told()
	return &env
}

// Category is a tool's; empty for a tool that does not exist.
func (b *Book) Category(tool string) registry.Category {
	if b.tools == nil {
		return ""
	}
	if t, ok := b.tools.Tool(tool); ok {
		return t.Category
	}
	return ""
}

// Refuse is the answer to a call of the tool that does not run.
func (b *Book) Refuse(tool string, e *registry.Error) registry.Envelope {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		env.Error = e
		return env
	}
	env := b.tools.Refuse(tool, e)
	env.Meta.DurationMS = 0 // deciding takes no time, whatever the clock said
	return env
}

// Took notes how long a tool ran. What is stored elsewhere took no time.
func (b *Book) Took(env registry.Envelope) {
	if !env.Meta.CacheHit {
		b.account.ToolTime += time.Duration(env.Meta.DurationMS) * time.Millisecond
	}
}

// Warned is an answer with the account where the budget is used up, or the tools have taken
// longer than they should.
func (b *Book) Warned(env registry.Envelope) registry.Envelope {
	if b.account.spent(b.rules.Budget) {
		env.Meta.Budget = b.Told()
	}
	return env
}

// Known finds the answer that is stored under an idempotency key, for a call of the tool
// with the same arguments.
func (b *Book) Known(key, tool, asked string) (registry.Envelope, bool) {
	return b.find(func(s Stored) bool { return s.Keys.Idempotency == key && s.Tool == tool && s.Asked == asked })
}

// Done finds the answer of a deed that was done.
func (b *Book) Done(tool, business string) (registry.Envelope, bool) {
	return b.find(func(s Stored) bool { return business != "" && s.Tool == tool && s.Keys.Business == business })
}

func (b *Book) find(is func(Stored) bool) (registry.Envelope, bool) {
	i := slices.IndexFunc(b.stored, is)
	if i < 0 {
		return registry.Envelope{}, false
	}
	return Again(b.stored[i].Envelope, b.stored[i].Turn), true
}

// Taken says whether an answer is stored under an idempotency key.
func (b *Book) Taken(key string) bool {
	return slices.ContainsFunc(b.stored, func(s Stored) bool { return s.Keys.Idempotency == key })
}

// Keep stores a good answer; the oldest make room. An answer that was stored elsewhere
// is not kept.
func (b *Book) Keep(s Stored) {
	if !s.Envelope.OK || s.Envelope.Meta.CacheHit {
		return
	}
	s.Envelope.Meta.Budget = nil // that of another moment
	b.stored = append(slices.Clip(b.stored), s)
	size := 0
	for _, s := range b.stored {
		size += len(s.Envelope.Data)
	}
	for len(b.stored) > maxAnswers || size > maxAnswerBytes && len(b.stored) > 1 {
		size -= len(b.stored[0].Envelope.Data)
		b.stored = b.stored[1:]
	}
}

// Again marks an answer that was made before, in a turn.
func Again(env registry.Envelope, turn int) registry.Envelope {
	env.Meta.CacheHit = true
	if env.Meta.OriginalTurn == 0 {
		env.Meta.OriginalTurn = turn
	}
	env.Meta.Budget = nil
	return env
}
