package calls

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Keys identify a call and its action. Calls with equal keys are the same call.
type Keys struct {
	Idempotency string // "provider:…", "hash:…" or "confirmation:…"
	Business    string // the tool's own key of the arguments, unique within the tool; may be empty
}

// Stored is a successful answer, kept for repetitions of the call.
type Stored struct {
	Keys     Keys
	Tool     string
	Asked    string // the model's arguments in canonical form
	Envelope registry.Envelope
	Turn     int
}

// Limits of the answers that a conversation keeps.
const (
	maxAnswers     = 100
	maxAnswerBytes = 4 << 20
)

// Book holds the turn's budget, the successful answers and the unapproved questions of a conversation. Copies are
// independent. It is not safe for concurrent use.
type Book struct {
	rules *Policy // never changes
	agent Agent   // the current agent
	tools *registry.Snapshot
	zone  *time.Location // the user's; nil if unknown
	// budget is the turn's, next the later turns'; nil means the rules' budget, or no change. Immutable.
	budget, next *Budget

	account    Account
	stored     []Stored     // oldest first
	unapproved []unapproved // the questions without an approval, oldest first
	switches   switches
}

// NewBook returns the Book of a conversation. tools may be nil. Conversations may share rules, which must not change.
func NewBook(tools *registry.Snapshot, rules *Policy) Book { return Book{tools: tools, rules: rules} }

// Agent makes calls. The zero Agent is unnamed.
type Agent struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"` // the version of the agent's document; may be empty
}

// SetZone sets the user's time zone, for times in previews; nil if unknown.
func (b *Book) SetZone(zone *time.Location) { b.zone = zone }

// SetAgent sets the agent that begins the conversation, or continues it in another process.
func (b *Book) SetAgent(a Agent) { b.agent = a }

// Budget returns the budget of each turn.
func (b *Book) Budget() Budget {
	limit := b.rules.Budget
	if b.budget != nil {
		limit = *b.budget
	}
	return limit.Or(DefaultBudget(b.rules.Mode))
}

// Account returns the turn's use.
func (b *Book) Account() Account { return b.account }

// Usage returns the account and its budget in JSON, for the model and the audit.
func (b *Book) Usage() json.RawMessage { return b.account.Encode(b.Budget()) }

// Slow reports whether the turn's tools have exceeded their common time budget.
func (b *Book) Slow() bool { return b.account.slow(b.Budget()) }

// BeginTurn gives later calls a new budget: the user has spoken or typed. An answer to a question keeps the old one.
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

// Prepare finds the tool among an agent's tools, which may be nil, checks the arguments and applies limits, or returns
// the answer to a call that cannot run.
func (b *Book) Prepare(tools *registry.Snapshot, tool string, args registry.Arguments) (*registry.Prepared, *registry.Envelope) {
	if tools == nil {
		env := registry.NotFound(tool, "", 0)
		return nil, &env
	}
	p, refusal := tools.PrepareDecoded(tool, b.rules.Mode, args)
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

// Confirms reports whether a call needs approval. The operator's list covers every call of a tool.
func (b *Book) Confirms(p *registry.Prepared) bool {
	return p.NeedsApproval() || slices.Contains(b.rules.Confirm, p.Tool().ToolID)
}

// Charge counts a call of a tool in the turn, whatever its outcome.
func (b *Book) Charge(tools *registry.Snapshot, tool string) {
	b.account.Total++
	if toolOf(tools, tool).Category == spec.CategoryRetrieval {
		b.account.Retrieval++
	}
}

// Exceeded returns the answer to the last charged call if it exceeds the turn's budget; otherwise nil.
func (b *Book) Exceeded(tools *registry.Snapshot, tool string) *registry.Envelope {
	limit, used := b.Budget(), "tool calls"
	n := limit.Total
	if b.account.Total <= limit.Total {
		if toolOf(tools, tool).Category != spec.CategoryRetrieval || b.account.Retrieval <= limit.Retrieval {
			return nil
		}
		used, n = "retrieval calls", limit.Retrieval
	}
	env := b.Refuse(tool, registry.NewError(registry.ErrorBudgetExceeded, prompts.BudgetUsedUp(used, n, tool)))
	env.Meta.Budget = b.Usage()
	return &env
}

// toolOf returns a tool of an agent, whose tools may be nil, or an empty one.
func toolOf(tools *registry.Snapshot, id string) *registry.Tool {
	if tools != nil {
		if t, ok := tools.Tool(id); ok {
			return t
		}
	}
	return new(registry.Tool)
}

// Refuse returns the error as the answer to a call that does not run.
func (b *Book) Refuse(tool string, e *registry.Error) registry.Envelope {
	if b.tools == nil {
		env := registry.NotFound(tool, "", 0)
		env.Error = e
		return env
	}
	env := b.tools.Refuse(tool, e)
	env.Meta.DurationMS = 0 // a decision takes no time
	return env
}

// AddToolTime adds the run time of a tool. A stored answer took no time.
func (b *Book) AddToolTime(env registry.Envelope) {
	if !env.Meta.CacheHit {
		b.account.ToolTime += time.Duration(env.Meta.DurationMS) * time.Millisecond
	}
}

// WithUsage adds the account to an answer if the budget is used up or the tools are slow.
func (b *Book) WithUsage(env registry.Envelope) registry.Envelope {
	if b.account.spent(b.Budget()) {
		env.Meta.Budget = b.Usage()
	}
	return env
}

// ByKey returns the answer stored under an idempotency key, for a call of the tool with the same arguments.
func (b *Book) ByKey(key, tool, asked string) (registry.Envelope, bool) {
	return b.find(func(s Stored) bool { return s.Keys.Idempotency == key && s.Tool == tool && s.Asked == asked })
}

// ByBusinessKey returns the stored answer with a business key.
func (b *Book) ByBusinessKey(tool, business string) (registry.Envelope, bool) {
	return b.find(func(s Stored) bool { return business != "" && s.Tool == tool && s.Keys.Business == business })
}

func (b *Book) find(is func(Stored) bool) (registry.Envelope, bool) {
	i := slices.IndexFunc(b.stored, is)
	if i < 0 {
		return registry.Envelope{}, false
	}
	return Again(b.stored[i].Envelope, b.stored[i].Turn), true
}

// HasKey reports whether an answer is stored under an idempotency key.
func (b *Book) HasKey(key string) bool {
	return slices.ContainsFunc(b.stored, func(s Stored) bool { return s.Keys.Idempotency == key })
}

// Keep stores a successful answer and drops the oldest beyond the limits. It ignores answers that came from a store.
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

// Again marks an answer as the repetition of an earlier one of that turn.
func Again(env registry.Envelope, turn int) registry.Envelope {
	env.Meta.CacheHit = true
	if env.Meta.OriginalTurn == 0 {
		env.Meta.OriginalTurn = turn
	}
	env.Meta.Budget = nil
	return env
}

// minProviderID is the longest provider id that is not trusted to be unique.
const minProviderID = 8

// ProviderKey returns the idempotency key of a provider's id; empty if the id is not reliably unique.
func ProviderKey(id string) string {
	name := strings.ToLower(id)
	for _, prefix := range []string{"call_", "call-", "fc_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if len(id) <= minProviderID || strings.HasPrefix(name, "tmp") || strings.HasPrefix(name, "temp") {
		return ""
	}
	return "provider:" + id
}

// HashKey returns the idempotency key of a call's canonical arguments in its turn.
func HashKey(tool, asked string, turn int) string {
	n := strconv.Itoa(turn)
	sum := sha256.Sum256([]byte(tool + asked + n))
	return "hash:" + n + ":" + hex.EncodeToString(sum[:])[:16]
}

// MaxTurnSwitches and MaxSwitches limit the changes of agent in a turn and in a conversation.
const (
	MaxTurnSwitches = 2
	MaxSwitches     = 12
)

type switches struct {
	// Turn counts the changes since the user last spoke or typed, All those of the conversation.
	Turn int `json:"turn,omitempty"`
	All  int `json:"all,omitempty"`
	// Left are the agents that have handed the user over since then, at most MaxTurnSwitches.
	Left []string `json:"left,omitempty"`
}

func (s *switches) spoken() { s.Turn, s.Left = 0, nil }

// MaySwitch returns why a tool may not switch to an agent now; nil if it may.
func (b *Book) MaySwitch(to string) *registry.Error {
	s := &b.switches
	switch {
	case s.All >= MaxSwitches:
		return registry.NewError(registry.ErrorConflict, prompts.SwitchedTooOften(MaxSwitches, "this conversation"))
	case slices.Contains(s.Left, to):
		return registry.NewError(registry.ErrorConflict, prompts.SwitchBack(to))
	case s.Turn >= MaxTurnSwitches:
		return registry.NewError(registry.ErrorConflict, prompts.SwitchedTooOften(MaxTurnSwitches, "this turn"))
	}
	return nil
}

// Switch continues as another agent, with its tools, which may be nil, and its budget from the next turn on.
func (b *Book) Switch(from string, to Agent, tools *registry.Snapshot, budget Budget) {
	b.agent, b.tools, b.next = to, tools, &budget
	if b.budget == nil {
		b.budget = &b.rules.Budget
	}
	s := &b.switches
	s.Turn++
	s.All++
	if len(s.Left) < MaxTurnSwitches {
		s.Left = append(slices.Clip(s.Left), from)
	}
}

// Budget limits the tool calls of one user turn. A zero field means the default of the mode; see [Budget.Or].
type Budget struct {
	Retrieval, Total int           // Retrieval is the maximum number of calls of retrieval tools, Total of all calls
	TopK             int           // the highest top_k of a retrieval tool
	ToolTime         time.Duration // a soft limit, which the model learns of; negative means none
}

// DefaultBudget returns the default budget of a mode.
func DefaultBudget(mode spec.Mode) Budget {
	if mode == spec.ModeText {
		return Budget{Retrieval: setting.TextRetrievals, Total: setting.TextCalls, TopK: setting.TextTopK, ToolTime: -1}
	}
	return Budget{Retrieval: setting.VoiceRetrievals, Total: setting.VoiceCalls, TopK: setting.VoiceTopK, ToolTime: setting.VoiceToolTime}
}

// Or returns b with its zero fields taken from c.
func (b Budget) Or(c Budget) Budget {
	return Budget{
		Retrieval: cmp.Or(b.Retrieval, c.Retrieval),
		Total:     cmp.Or(b.Total, c.Total),
		TopK:      cmp.Or(b.TopK, c.TopK),
		ToolTime:  cmp.Or(b.ToolTime, c.ToolTime),
	}
}

// Policy is the operator's configuration for a conversation.
type Policy struct {
	Mode      spec.Mode
	Budget    Budget
	Confirm   []string  // lists tools that need approval although their specs do not say so
	Questions Questions // limits the questions to a user
}

// Account is a turn's use of its budget.
type Account struct {
	Retrieval, Total int
	ToolTime         time.Duration
}

type used struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Encode returns the account and its budget as JSON: {"retrieval":{"used":1,"limit":2},…}. tool_time_ms may be left
// out.
func (a Account) Encode(b Budget) json.RawMessage {
	usage := struct {
		Retrieval used  `json:"retrieval"`
		Total     used  `json:"total"`
		ToolTime  *used `json:"tool_time_ms,omitempty"`
	}{Retrieval: used{int64(a.Retrieval), int64(b.Retrieval)}, Total: used{int64(a.Total), int64(b.Total)}}
	if b.ToolTime > 0 {
		usage.ToolTime = &used{a.ToolTime.Milliseconds(), b.ToolTime.Milliseconds()}
	}
	raw, _ := json.Marshal(usage) // only whole numbers: it cannot fail
	return raw
}

// spent reports whether no further call is allowed or the tools are slow.
func (a Account) spent(b Budget) bool {
	return a.Total >= b.Total || a.Retrieval >= b.Retrieval || a.slow(b)
}

func (a Account) slow(b Budget) bool { return b.ToolTime > 0 && a.ToolTime > b.ToolTime }

// Questions limits the questions that end without an approval. A zero field means the default.
type Questions struct {
	// PerTool limits the questions about one tool that are declined, expire or are answered elsewhere. After that,
	// each time the user speaks or types allows one more. The default is setting.QuestionsPerTool.
	PerTool int
	Total   int // limits the questions about all tools that are open or ended like that. The default is setting.Questions.
}

type unapproved struct {
	Tool   string `json:"tool"`
	Name   string `json:"name"`             // as given to Asked
	Over   bool   `json:"over,omitempty"`   // the question is closed
	Before bool   `json:"before,omitempty"` // the user has spoken or typed since
}

// AskedEnough returns why a call must not be asked about any more; nil if it may. asking lists the tools with questions
// being recorded, because a batch is decided before its first question is asked.
func (b *Book) AskedEnough(tool string, asking []string) *registry.Error {
	total, over, lately := len(b.unapproved)+len(asking), 0, slices.Contains(asking, tool)
	for _, q := range b.unapproved {
		if q.Tool == tool {
			lately = lately || !q.Before
			if q.Over {
				over++
			}
		}
	}
	switch most := b.rules.Questions; {
	case total >= cmp.Or(most.Total, setting.Questions):
		return registry.NewError(registry.ErrorBudgetExceeded, prompts.ApprovalAskedTooOften(total, tool))
	case over >= cmp.Or(most.PerTool, setting.QuestionsPerTool) && lately:
		return registry.NewError(registry.ErrorBudgetExceeded, prompts.ApprovalAskedTooOftenAbout(over, tool))
	default:
		return nil
	}
}

// Asked records a question about a tool. name is stored with the conversation, so it must not be the token.
func (b *Book) Asked(tool, name string) {
	b.unapproved = append(slices.Clip(b.unapproved), unapproved{Tool: tool, Name: name})
}

// Resolved records that the question with that name is closed.
func (b *Book) Resolved(name string) {
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		q := &b.unapproved[i]
		q.Over = q.Over || q.Name == name
	}
}

// Approved records an approval of the question with that name. The tool's questions up to it no longer count.
func (b *Book) Approved(tool, name string) {
	until := slices.IndexFunc(b.unapproved, func(q unapproved) bool { return q.Tool == tool && q.Name == name })
	var left []unapproved
	for i, q := range b.unapproved {
		if q.Tool != tool || i > until {
			left = append(left, q)
		}
	}
	b.unapproved = left
}

// Unapproved calls see with each question that counts, oldest first. see may call Approved, Resolved and Forget.
func (b *Book) Unapproved(see func(tool, name string)) {
	for _, q := range slices.Clone(b.unapproved) {
		see(q.Tool, q.Name)
	}
}

// Forget removes the question with that name.
func (b *Book) Forget(name string) {
	b.unapproved = slices.DeleteFunc(slices.Clone(b.unapproved), func(q unapproved) bool { return q.Name == name })
}

type carried struct {
	Retrieval  int          `json:"retrieval,omitempty"`
	Total      int          `json:"total,omitempty"`
	ToolTimeMS int64        `json:"tool_time_ms,omitempty"`
	Unapproved []unapproved `json:"unapproved,omitempty"`
	Switches   switches     `json:"switches,omitzero"`
}

// Carry returns the use of the turn's budget and the unapproved questions, for Resume in the next message.
func (b *Book) Carry() json.RawMessage {
	raw, _ := json.Marshal(carried{ // only numbers and strings: it cannot fail
		Retrieval: b.account.Retrieval, Total: b.account.Total, ToolTimeMS: b.account.ToolTime.Milliseconds(),
		Unapproved: b.unapproved, Switches: b.switches,
	})
	return raw
}

// Resume restores the result of Carry; an empty raw changes nothing. The turn continues until BeginTurn.
func (b *Book) Resume(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var c carried
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("stored tool call budget of the conversation: %w", err)
	}
	b.account = Account{Retrieval: max(c.Retrieval, 0), Total: max(c.Total, 0),
		ToolTime: time.Duration(max(c.ToolTimeMS, 0)) * time.Millisecond}
	b.unapproved, b.switches = c.Unapproved, c.Switches
	return nil
}
