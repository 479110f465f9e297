package policy

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts/toolerror"
	"voicegw/registry"
)

// Call is a call as the model made it.
type Call struct {
	// ID is the gateway's own name, unique in the conversation.
	ID string
	// ProviderID is the model's, empty where it gave none.
	ProviderID string
	Tool       string
	// Args is what the model wrote, not checked yet.
	Args json.RawMessage
	// Turn counts from 1.
	Turn int
}

// Verdict is what becomes of a call.
type Verdict int

// The verdicts.
const (
	// Answered: Decision.Envelope is the answer; nothing runs.
	Answered Verdict = iota + 1
	// Joined: the call gets the answer of Decision.Into, which is running.
	Joined
	// Repeated: it is Decision.Into itself, announced again; it gets no answer of its own.
	Repeated
	// Run: Decision.Prepared is to run; tell the Book with Finished.
	Run
	// Ask: a person has to approve Decision.Prepared first; tell the Book with Asked.
	Ask
)

// Decision is what the Book says of one call.
type Decision struct {
	Verdict  Verdict
	Envelope registry.Envelope
	Into     string
	// First is, of Repeated, the call as it was announced before: Into or one that has
	// joined it.
	First    string
	Prepared *registry.Prepared // of Run and Ask
	Keys     Keys
	// OverBudget says that the answer is BUDGET_EXCEEDED: the model has to answer
	// without further tools.
	OverBudget bool
	// Budget is the account of the turn after the call, as in the answer's meta.
	Budget json.RawMessage
}

// Keys are the names under which a call is the same call, and a deed the same deed.
type Keys struct {
	// Idempotency is "provider:…", "hash:…" or "confirmation:…".
	Idempotency string
	// Business is the tool's own key over the arguments, unique within the tool; empty
	// if the tool has none.
	Business string
}

// Answer is a terminal for one call.
type Answer struct {
	Call     string
	Envelope registry.Envelope
	// Joined says that the call ran nothing itself.
	Joined bool
}

// maxAnswers and maxAnswerBytes bound what a conversation remembers of its calls.
const (
	maxAnswers     = 100
	maxAnswerBytes = 4 << 20
)

// Book keeps the calls of one conversation. It is a value: a copy of it stays as it
// was when another copy is changed. It is not for concurrent use.
type Book struct {
	// Fixed after NewBook.
	tools *registry.Snapshot // nil: there are no tools
	rules Rules

	account Account
	running []running // in the order they were asked for
	stored  []stored  // oldest first
	asked   []asked   // confirmations that wait
	// unapproved are the questions that nobody has approved, oldest first.
	unapproved []unapproved
}

// running is a call that runs, or whose confirmation is being made.
type running struct {
	call   string
	keys   Keys
	tool   string
	asked  string // its arguments, canonical, as the model wrote them
	args   string // and after defaults and clamp
	turn   int
	asking bool // its confirmation is being made: nothing runs
	joined []joined
}

// joined is a call that waits for the answer of a running one.
type joined struct {
	call  string
	key   string // its idempotency key
	asked string
}

// stored is a good answer that is given again to whoever asks the same again.
type stored struct {
	keys     Keys
	tool     string
	asked    string // canonical, as the model wrote it
	envelope registry.Envelope
	turn     int
}

// asked is a call that a person was asked about.
type asked struct {
	token    string
	tool     string
	args     string
	envelope registry.Envelope
	turn     int
}

// NewBook returns the Book of a conversation that holds tools.
func NewBook(tools *registry.Snapshot, rules Rules) Book {
	rules.Budget = rules.Budget.Or(DefaultBudget(rules.Mode))
	rules.Questions = rules.Questions.withDefaults()
	return Book{tools: tools, rules: rules}
}

// Tools is the snapshot that the conversation holds; nil if there are no tools.
func (b *Book) Tools() *registry.Snapshot { return b.tools }

// Budget is what each turn may use.
func (b *Book) Budget() Budget { return b.rules.Budget }

// Account is what the turn has used so far.
func (b *Book) Account() Account { return b.account }

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

// Decide says what becomes of a call, in the order that docs/policy.md gives. Calls of
// one batch are decided one after another, in the order given.
func (b *Book) Decide(c Call) Decision {
	asText := canonical(c.Args)
	d := Decision{Keys: Keys{Idempotency: keyOf(c, asText)}}
	if b.repeat(c, asText, &d) {
		return b.done(d)
	}
	prepared, refusal := b.prepare(c)
	if prepared != nil {
		prepared.Clamp(b.limits(prepared.Tool()))
		d.Keys.Business = prepared.BusinessKey()
		if b.duplicate(c, asText, prepared, &d, false) {
			return b.done(d)
		}
	}
	b.count(c.Tool)
	switch {
	case refusal != nil && refusal.Error.Type != registry.ErrorValidation:
		b.answer(&d, *refusal)
	case b.over(c.Tool):
		d.OverBudget = true
		b.answer(&d, b.exceeded(c.Tool))
	case refusal != nil:
		b.answer(&d, *refusal)
	case b.rules.confirms(prepared.Tool()):
		b.ask(c, asText, prepared, &d)
	default:
		d.Verdict, d.Prepared = Run, prepared
		b.run(c, asText, d.Keys, prepared)
	}
	return b.done(d)
}

// ask has a person asked about a call, unless they are being asked about the same or were
// asked often enough.
func (b *Book) ask(c Call, asText string, p *registry.Prepared, d *Decision) {
	if b.waits(p, d) {
		return
	}
	if refusal := b.askedEnough(p.Tool().ToolID); refusal != nil {
		b.answer(d, p.Refuse(refusal))
		return
	}
	d.Verdict, d.Prepared = Ask, p
	b.run(c, asText, d.Keys, p)
	b.running[len(b.running)-1].asking = true
}

func (b *Book) done(d Decision) Decision {
	d.Budget = b.account.Encode(b.rules.Budget)
	return d
}

// prepare finds and checks the call without running it.
func (b *Book) prepare(c Call) (*registry.Prepared, *registry.Envelope) {
	if b.tools == nil {
		env := registry.NotFound(c.Tool, "", 0)
		return nil, &env
	}
	return b.tools.Prepare(c.Tool, b.rules.Mode, c.Args)
}

// limits is the mode's own rule for the arguments of a tool.
func (b *Book) limits(t *registry.Tool) map[string]int {
	if t.Category != registry.CategoryRetrieval {
		return nil
	}
	return map[string]int{"top_k": b.rules.Budget.TopK}
}

// answer makes env the answer. Deciding takes no time, whatever the clock said.
func (b *Book) answer(d *Decision, env registry.Envelope) {
	env.Meta.DurationMS = 0
	if d.OverBudget {
		env.Meta.Budget = b.account.Encode(b.rules.Budget)
	}
	d.Verdict, d.Envelope = Answered, env
}

// repeat recognises a call that was made before under the same key.
func (b *Book) repeat(c Call, asText string, d *Decision) bool {
	if b.same(c, asText, d) {
		return true
	}
	if !trusted(c.ProviderID) || !b.knows(d.Keys.Idempotency) {
		return false
	}
	// The id stands for another call: it names nothing here.
	d.Keys.Idempotency = hashKey(c, asText)
	return b.same(c, asText, d)
}

// same finds what runs or is stored under the call's key. What the provider names is the
// same call announced again; what it does not may be another one, and joins.
func (b *Book) same(c Call, asText string, d *Decision) bool {
	key, named := d.Keys.Idempotency, d.Keys.Idempotency == providerKey(c.ProviderID)
	for i, r := range b.running {
		if r.tool != c.Tool {
			continue
		}
		first, found := r.announced(key, asText)
		switch {
		case !found:
		case named:
			d.Verdict, d.Into, d.First = Repeated, r.call, first
			return true
		default:
			b.join(i, c.ID, asText, d)
			return true
		}
	}
	for _, s := range b.stored {
		if s.keys.Idempotency == key && s.tool == c.Tool && s.asked == asText {
			b.answer(d, again(s.envelope, s.turn))
			return true
		}
	}
	return false
}

// announced finds the call that was asked for under a key: the running one, or one that
// has joined it.
func (r running) announced(key, asText string) (call string, ok bool) {
	if r.keys.Idempotency == key && r.asked == asText {
		return r.call, true
	}
	for _, j := range r.joined {
		if j.key == key && j.asked == asText {
			return j.call, true
		}
	}
	return "", false
}

// knows says whether a key is taken.
func (b *Book) knows(key string) bool {
	return slices.ContainsFunc(b.running, func(r running) bool {
		return r.keys.Idempotency == key || slices.ContainsFunc(r.joined, func(j joined) bool { return j.key == key })
	}) || slices.ContainsFunc(b.stored, func(s stored) bool { return s.keys.Idempotency == key })
}

// duplicate recognises a call that asks for what runs already, or for a deed that was
// done. What is approved does not wait for a question.
func (b *Book) duplicate(c Call, asText string, p *registry.Prepared, d *Decision, approved bool) bool {
	for i, r := range b.running {
		if r.asking && approved {
			continue
		}
		equal := r.args == string(p.Args()) && (r.turn == c.Turn || p.Tool().SideEffects == registry.SideEffectsWrites)
		if r.tool == c.Tool && (equal || d.Keys.Business != "" && r.keys.Business == d.Keys.Business) {
			b.join(i, c.ID, asText, d)
			return true
		}
	}
	if d.Keys.Business == "" {
		return false
	}
	for _, s := range b.stored {
		if s.tool == c.Tool && s.keys.Business == d.Keys.Business {
			b.answer(d, again(s.envelope, s.turn))
			return true
		}
	}
	return false
}

// waits recognises a call that a person was asked about and has not answered: one
// question is enough.
func (b *Book) waits(p *registry.Prepared, d *Decision) bool {
	for _, a := range b.asked {
		if a.tool == p.Tool().ToolID && a.args == string(p.Args()) {
			b.answer(d, again(a.envelope, a.turn))
			return true
		}
	}
	return false
}

func (b *Book) join(i int, call, asText string, d *Decision) {
	b.running = slices.Clone(b.running)
	r := &b.running[i]
	r.joined = append(slices.Clip(r.joined), joined{call: call, key: d.Keys.Idempotency, asked: asText})
	d.Verdict, d.Into = Joined, r.call
}

func (b *Book) run(c Call, asText string, keys Keys, p *registry.Prepared) {
	b.running = append(slices.Clip(b.running), running{
		call: c.ID, keys: keys, tool: c.Tool, asked: asText, args: string(p.Args()), turn: c.Turn,
	})
}

// count charges a call to the turn: refused ones count too.
func (b *Book) count(tool string) {
	b.account.Total++
	if b.category(tool) == registry.CategoryRetrieval {
		b.account.Retrieval++
	}
}

// over says whether the call that was counted last is more than the turn may have.
func (b *Book) over(tool string) bool {
	limit := b.rules.Budget
	return b.account.Total > limit.Total ||
		b.category(tool) == registry.CategoryRetrieval && b.account.Retrieval > limit.Retrieval
}

// exceeded is the answer to a call beyond the budget: it tells the model to speak.
func (b *Book) exceeded(tool string) registry.Envelope {
	limit, used := b.rules.Budget, "tool calls"
	n := limit.Total
	if b.account.Total <= limit.Total {
		used, n = "retrieval calls", limit.Retrieval
	}
	return b.Refuse(tool, registry.NewError(registry.ErrorBudgetExceeded, toolerror.BudgetUsedUp(used, n, tool)))
}

func (b *Book) category(tool string) registry.Category {
	if b.tools == nil {
		return ""
	}
	if t, ok := b.tools.Tool(tool); ok {
		return t.Category
	}
	return ""
}

// Refuse is the answer to a call of the tool that the caller itself does not let run.
func (b *Book) Refuse(tool string, e *registry.Error) registry.Envelope {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		env.Error = e
		return env
	}
	return b.tools.Refuse(tool, e)
}

// Charge counts a call of a tool that the caller answers itself, and returns the account.
func (b *Book) Charge(tool string) json.RawMessage {
	b.count(tool)
	return b.account.Encode(b.rules.Budget)
}

// Hand counts a call of a tool that the client runs, and returns the account. over is the
// answer to one beyond the budget, which is not handed over; else nil.
func (b *Book) Hand(tool string) (budget json.RawMessage, over *registry.Envelope) {
	b.count(tool)
	if b.over(tool) {
		env := b.exceeded(tool)
		env.Meta.DurationMS, env.Meta.Budget = 0, b.account.Encode(b.rules.Budget)
		over = &env
	}
	return b.account.Encode(b.rules.Budget), over
}

// Confirmed lets a call run that a person has approved. It counts in its turn and is
// refused nothing but doing the same deed twice.
func (b *Book) Confirmed(c Call, reference string, p *registry.Prepared) Decision {
	d := Decision{Keys: Keys{Idempotency: "confirmation:" + reference, Business: p.BusinessKey()}}
	asText := string(p.Args())
	if b.duplicate(c, asText, p, &d, true) {
		return b.done(d)
	}
	b.count(c.Tool)
	d.Verdict, d.Prepared = Run, p
	b.run(c, asText, d.Keys, p)
	return b.done(d)
}

// Asked notes that a person is asked about a call under a token, which may be any name that
// the question has with the caller. Its answers are CONFIRMATION_REQUIRED, which env holds.
func (b *Book) Asked(call, token string, env registry.Envelope) []Answer {
	i := b.index(call)
	if i < 0 {
		return nil
	}
	r := b.running[i]
	b.asked = append(slices.Clip(b.asked), asked{token: token, tool: r.tool, args: r.args, envelope: env, turn: r.turn})
	b.unapproved = append(slices.Clip(b.unapproved), unapproved{Tool: r.tool, Name: token})
	return b.Finished(call, env, 0)
}

// Recall notes a question of an earlier turn that a person has not answered yet: env is
// the CONFIRMATION_REQUIRED that the model was given, as it was kept: without the token, so
// that Resolved does not find it.
func (b *Book) Recall(env registry.Envelope, turn int) {
	q := env.Error.ConfirmationRequest
	b.asked = append(slices.Clip(b.asked), asked{token: q.Token, tool: q.Tool, args: canonical(q.Args), envelope: env, turn: turn})
}

// Resolved notes that a question does not wait any more: it was answered, or is too old.
func (b *Book) Resolved(token string) {
	b.asked = slices.DeleteFunc(slices.Clone(b.asked), func(a asked) bool { return a.token == token })
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		q := &b.unapproved[i]
		q.Over = q.Over || q.Name == token
	}
}

// Finished takes the answer of a call that ran for took, and returns the terminals of
// the call and of all that joined it, in the order they were asked for. An unknown call
// has none. A good answer is kept for repeats.
func (b *Book) Finished(call string, env registry.Envelope, took time.Duration) []Answer {
	i := b.index(call)
	if i < 0 {
		return nil
	}
	r := b.running[i]
	b.running = slices.Delete(slices.Clone(b.running), i, i+1)
	b.account.ToolTime += took
	if env.OK && !env.Meta.CacheHit {
		b.keep(r, env)
	}
	if b.account.spent(b.rules.Budget) {
		env.Meta.Budget = b.account.Encode(b.rules.Budget)
	}
	answers := []Answer{{Call: call, Envelope: env}}
	for _, j := range r.joined {
		answers = append(answers, Answer{Call: j.call, Envelope: again(env, r.turn), Joined: true})
	}
	return answers
}

func (b *Book) index(call string) int {
	return slices.IndexFunc(b.running, func(r running) bool { return r.call == call })
}

// keep stores a good answer, for the call and for those that joined it under names of
// their own; the oldest make room.
func (b *Book) keep(r running, env registry.Envelope) {
	env.Meta.Budget = nil // that of another moment
	b.stored = append(slices.Clip(b.stored), stored{keys: r.keys, tool: r.tool, asked: r.asked, envelope: env, turn: r.turn})
	for _, j := range r.joined {
		if !b.knows(j.key) {
			keys := Keys{Idempotency: j.key, Business: r.keys.Business}
			b.stored = append(b.stored, stored{keys: keys, tool: r.tool, asked: j.asked, envelope: env, turn: r.turn})
		}
	}
	size := 0
	for _, s := range b.stored {
		size += len(s.envelope.Data)
	}
	for len(b.stored) > maxAnswers || size > maxAnswerBytes && len(b.stored) > 1 {
		size -= len(b.stored[0].envelope.Data)
		b.stored = b.stored[1:]
	}
}

// again marks an answer that was made before.
func again(env registry.Envelope, turn int) registry.Envelope {
	env.Meta.CacheHit = true
	if env.Meta.OriginalTurn == 0 {
		env.Meta.OriginalTurn = turn
	}
	env.Meta.Budget = nil
	return env
}
