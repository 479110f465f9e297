package calls

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Keys identify a call (two calls with equal keys are the same call) and its deed.
type Keys struct {
	// Idempotency is "provider:…", "hash:…" or "confirmation:…".
	Idempotency string
	// Business is the key that the tool itself makes of the arguments, unique within the tool;
	// empty if the tool makes none.
	Business string
}

// Stored is a successful answer, kept for a call that asks for the same again.
type Stored struct {
	Keys Keys
	Tool string
	// Asked are the call's arguments as the model wrote them, in canonical form.
	Asked    string
	Envelope registry.Envelope
	Turn     int
}

// maxAnswers and maxAnswerBytes bound the answers that a conversation keeps.
const (
	maxAnswers     = 100
	maxAnswerBytes = 4 << 20
)

// Book is what a conversation remembers of its tool calls: what the turn has used, the
// successful answers, and the questions that nobody has approved. It is a value: changing one
// copy does not change another. It is not safe for concurrent use.
type Book struct {
	rules *Policy // fixed after NewBook
	// agent is the present one, and tools are its tools; nil if it has none.
	agent Agent
	tools *registry.Snapshot
	zone  *time.Location // of the user; nil if unknown
	// budget is that of the turn, next that of the turns after it; nil means that of the rules, and no
	// other one. Immutable.
	budget, next *Budget

	account Account
	stored  []Stored // oldest first
	// unapproved are the questions that nobody has approved, oldest first.
	unapproved []unapproved
	switches   switches
}

// NewBook returns the Book of a conversation with these tools; tools is nil if it has none.
// The rules, which many conversations may share, must not change any more.
func NewBook(tools *registry.Snapshot, rules *Policy) Book { return Book{tools: tools, rules: rules} }

// Agent is an agent in whose name calls are made. The zero Agent is one that nobody has named.
type Agent struct {
	Name string `json:"name,omitempty"`
	// Version is that of the agent's document; empty without one.
	Version string `json:"version,omitempty"`
}

// In sets the user's time zone, in which previews of calls write times; nil if it is unknown.
func (b *Book) In(zone *time.Location) { b.zone = zone }

// As names the agent with which the conversation begins, or goes on in another process.
func (b *Book) As(a Agent) { b.agent = a }

// Agent returns the present agent; zero if nobody has named it.
func (b *Book) Agent() Agent { return b.agent }

// Tools returns the conversation's snapshot of the tools; nil if there are no tools.
func (b *Book) Tools() *registry.Snapshot { return b.tools }

// Mode returns the conversation's mode.
func (b *Book) Mode() spec.Mode { return b.rules.Mode }

// Budget returns what each turn may use.
func (b *Book) Budget() Budget {
	limit := b.rules.Budget
	if b.budget != nil {
		limit = *b.budget
	}
	return limit.Or(DefaultBudget(b.rules.Mode))
}

// Account returns what the turn has used so far.
func (b *Book) Account() Account { return b.account }

// Told returns the account and its budget in the form that the model and the audit get.
func (b *Book) Told() json.RawMessage { return b.account.Encode(b.Budget()) }

// Slow reports whether the tools of the turn have together taken longer than they should.
func (b *Book) Slow() bool { return b.account.slow(b.Budget()) }

// BeginTurn gives the following calls a new budget, because the user has said something. An
// answer to a question does not begin such a turn: it continues with the previous budget.
func (b *Book) BeginTurn() {
	b.account = Account{}
	if b.next != nil {
		b.budget, b.next = b.next, nil
	}
	b.switches.spoken()
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		b.unapproved[i].Before = true
	}
}

// Prepare finds the tool, checks the arguments and lowers those that exceed a limit. If the call
// cannot run, it returns the Envelope that answers it.
func (b *Book) Prepare(tool string, args registry.Arguments) (*registry.Prepared, *registry.Envelope) {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		return nil, &env
	}
	p, refusal := b.tools.PrepareDecoded(tool, b.rules.Mode, args)
	if p == nil {
		return nil, refusal
	}
	var limits map[string]int // the limits of the mode
	if p.Tool().Category == spec.CategoryRetrieval {
		limits = map[string]int{"top_k": b.Budget().TopK}
	}
	p.Clamp(limits)
	p.SetZone(b.zone)
	return p, nil
}

// PrepareOf is Prepare with the tools of another agent, which may be nil.
func (b *Book) PrepareOf(tools *registry.Snapshot, tool string, args registry.Arguments) (*registry.Prepared, *registry.Envelope) {
	other := Book{rules: b.rules, budget: b.budget, tools: tools, zone: b.zone}
	return other.Prepare(tool, args)
}

// Confirms reports whether a person must approve a call. The operator's list counts for every call of a tool,
// whatever its conditions are.
func (b *Book) Confirms(p *registry.Prepared) bool {
	return p.NeedsApproval() || slices.Contains(b.rules.Confirm, p.Tool().ToolID)
}

// Charge counts a call of the tool in the turn, whatever happens to it afterwards.
func (b *Book) Charge(tool string) { b.ChargeOf(b.tools, tool) }

// ChargeOf is Charge for a call of another agent, with that agent's tools, which may be nil.
func (b *Book) ChargeOf(tools *registry.Snapshot, tool string) {
	b.account.Total++
	if categoryOf(tools, tool) == spec.CategoryRetrieval {
		b.account.Retrieval++
	}
}

// Exceeded returns the answer to the call that was charged last, if it exceeds the turn's budget:
// it tells the model to speak. It is nil within the budget.
func (b *Book) Exceeded(tool string) *registry.Envelope { return b.ExceededOf(b.tools, tool) }

// ExceededOf is Exceeded for a call of another agent, with that agent's tools, which may be nil.
func (b *Book) ExceededOf(tools *registry.Snapshot, tool string) *registry.Envelope {
	limit, used := b.Budget(), "tool calls"
	n := limit.Total
	if b.account.Total <= limit.Total {
		if categoryOf(tools, tool) != spec.CategoryRetrieval || b.account.Retrieval <= limit.Retrieval {
			return nil
		}
		used, n = "retrieval calls", limit.Retrieval
	}
	env := b.Refuse(tool, registry.NewError(registry.ErrorBudgetExceeded, prompts.BudgetUsedUp(used, n, tool)))
	env.Meta.Budget = b.Told()
	return &env
}

// Category returns the tool's category; empty if the tool does not exist.
func (b *Book) Category(tool string) spec.Category { return categoryOf(b.tools, tool) }

func categoryOf(tools *registry.Snapshot, tool string) spec.Category {
	if tools == nil {
		return ""
	}
	if t, ok := tools.Tool(tool); ok {
		return t.Category
	}
	return ""
}

// Refuse returns the answer to a call of the tool that is not run.
func (b *Book) Refuse(tool string, e *registry.Error) registry.Envelope {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		env.Error = e
		return env
	}
	env := b.tools.Refuse(tool, e)
	env.Meta.DurationMS = 0 // a decision takes no time, whatever the clock measured
	return env
}

// Took adds the time that a tool ran. An answer from the store took no time.
func (b *Book) Took(env registry.Envelope) {
	if !env.Meta.CacheHit {
		b.account.ToolTime += time.Duration(env.Meta.DurationMS) * time.Millisecond
	}
}

// Warned returns an answer with the account added, if the budget is used up or the tools have
// taken longer than they should.
func (b *Book) Warned(env registry.Envelope) registry.Envelope {
	if b.account.spent(b.Budget()) {
		env.Meta.Budget = b.Told()
	}
	return env
}

// Known returns the answer stored under an idempotency key, for a call of the tool with the same
// arguments.
func (b *Book) Known(key, tool, asked string) (registry.Envelope, bool) {
	return b.find(func(s Stored) bool { return s.Keys.Idempotency == key && s.Tool == tool && s.Asked == asked })
}

// Done returns the stored answer of a deed.
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

// Taken reports whether an answer is stored under an idempotency key.
func (b *Book) Taken(key string) bool {
	return slices.ContainsFunc(b.stored, func(s Stored) bool { return s.Keys.Idempotency == key })
}

// Keep stores a successful answer; the oldest ones make room. An answer that came from a store
// is not kept.
func (b *Book) Keep(s Stored) {
	if !s.Envelope.OK || s.Envelope.Meta.CacheHit {
		return
	}
	s.Envelope.Meta.Budget = nil // the account of another moment
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

// Again marks an answer as a repetition of an earlier one, which was made in that turn.
func Again(env registry.Envelope, turn int) registry.Envelope {
	env.Meta.CacheHit = true
	if env.Meta.OriginalTurn == 0 {
		env.Meta.OriginalTurn = turn
	}
	env.Meta.Budget = nil
	return env
}

// minProviderID is the minimum length of a provider's id that counts as unique, less one.
const minProviderID = 8

// ProviderKey returns the idempotency key made from a provider's id; empty if the id is not
// reliably unique.
func ProviderKey(id string) string {
	if !trusted(id) {
		return ""
	}
	return "provider:" + id
}

// HashKey returns the idempotency key made from what a call asks for in its turn: asked is its
// arguments in canonical form.
func HashKey(tool, asked string, turn int) string {
	n := strconv.Itoa(turn)
	sum := sha256.Sum256([]byte(tool + asked + n))
	return "hash:" + n + ":" + hex.EncodeToString(sum[:])[:16]
}

// trusted reports whether a provider's id reliably identifies one call.
func trusted(id string) bool {
	if len(id) <= minProviderID {
		return false
	}
	name := strings.ToLower(id)
	for _, prefix := range []string{"call_", "call-", "fc_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return !strings.HasPrefix(name, "tmp") && !strings.HasPrefix(name, "temp")
}
