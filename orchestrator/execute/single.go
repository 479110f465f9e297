package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// SingleCall is a conversation that has one tool call: a person's at a terminal, or that of a program which keeps its
// conversation to itself. Policy, ledger, approvals and audit are those of other conversations. Zero fields after Args
// are usable. The functions must not block, except Approve.
type SingleCall struct {
	Executor *Executor
	Session  registry.Session // its ID belongs to this call only
	Tools    *registry.Snapshot
	Rules    calls.Policy
	Agent    calls.Agent
	Tool     string
	Args     json.RawMessage // as the caller wrote them

	// Key is the caller's idempotency key, valid by CheckKey. The ledger has one name for all calls of the tool with
	// that key within Scope.
	Key          string
	Scope        []string
	Channel      string // as in the audit
	Capabilities []any
	Describe     func(*registry.Session)
	Tell         func(protocol.ServerMessage) // messages to the client; may be called concurrently
	Audit        func(audit.Record)           // may be called concurrently
	// Watch gets each decision before it is carried out, on the goroutine of Run.
	Watch func(calls.Action)
	// Approve asks a person. If it is nil, the question stays open and can be answered by other ways.
	Approve func(context.Context, *protocol.ConfirmationRequest) bool
}

// maxResults exceeds the results of a call and its nested calls.
const maxResults = 64

// MaxKey limits an idempotency key, in bytes.
const MaxKey = 200

// CheckKey returns an error unless key is a valid idempotency key, or empty.
func CheckKey(key string) error {
	if len(key) > MaxKey || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("must be at most %d bytes of printable text", MaxKey)
	}
	return nil
}

type single struct {
	SingleCall
	calls    calls.Calls
	runs     *Runner
	results  chan calls.Input // from the executor's goroutines; never closed
	owed     int              // outstanding results
	left     bool             // the caller is gone
	question *protocol.ConfirmationRequest
	envelope registry.Envelope
}

// Run makes the call and returns its answer. When ctx ends, it stops a call that can be stopped, and waits for the rest.
func (c SingleCall) Run(ctx context.Context) registry.Envelope {
	v := &single{SingleCall: c, results: make(chan calls.Input, maxResults)}
	v.calls = calls.New(c.Tools, &calls.Rules{Tools: c.Rules, Prefix: "call_"})
	v.calls.Book().SetAgent(c.Agent)
	v.runs = c.Executor.Begin(Conversation{
		Session: c.Session, Channel: c.Channel, Ephemeral: true, Capabilities: c.Capabilities, Describe: c.Describe,
		Tell: c.Tell, Audit: v.audit, Report: func(in calls.Input) { v.results <- in },
	})
	defer v.runs.Wait()
	defer v.runs.End()
	in := calls.Called{Turn: 1, Model: c.Key, Provider: c.Key, Tool: c.Tool, Args: c.Args}
	if c.Key != "" {
		name, _ := json.Marshal(append(c.Scope[:len(c.Scope):len(c.Scope)], c.Tool, c.Key)) // strings only: cannot fail
		in.Message = string(name)
	}
	v.do(v.calls.Called(time.Now(), in))
	v.await(ctx)
	if q := v.question; q != nil && c.Approve != nil {
		v.do(v.calls.Answered(q.Token, c.Approve(ctx, q)))
		v.await(ctx)
	}
	return v.envelope
}

func (v *single) await(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	gone := ctx.Done()
	for v.owed > 0 {
		select {
		case in := <-v.results:
			v.take(in)
		case now := <-tick.C:
			v.do(v.calls.Tick(now))
		case <-gone:
			gone, v.left = nil, true
			v.runs.End()
			v.do(v.calls.Over())
		}
	}
}

func (v *single) take(in calls.Input) {
	v.do(v.calls.Take(time.Now(), in))
	if _, more := in.(calls.Nested); !more {
		v.owed--
	}
}

func (v *single) do(all []calls.Action) {
	for _, a := range all {
		if v.Watch != nil {
			v.Watch(a)
		}
		switch a := a.(type) {
		case calls.Run:
			v.owed++
			v.runs.Run(a)
		case calls.Ask:
			v.owed++
			v.runs.Ask(a)
		case calls.Resolve:
			v.owed++
			v.runs.Resolve(a)
		case calls.Permit:
			v.runs.Permit(a)
		case calls.ToClient:
			if v.Tell != nil {
				v.Tell(a.Message)
			}
			if q, ok := a.Message.(*protocol.ConfirmationRequest); ok {
				v.question = q
			}
		case calls.Approved: // an approved action always has its own turn
			v.do(v.calls.Approve(time.Now(), 2, a))
		case calls.Declined:
			v.audit(a.Record)
		case calls.Answer:
			v.answered(a)
		}
	}
}

func (v *single) answered(a calls.Answer) {
	e := calls.Effect{Refused: a.Intents()}
	if len(e.Refused) > 0 {
		e.Why = "no session"
	}
	if v.left {
		e.NotDelivered = "client_gone"
	}
	v.audit(a.Record(time.Now(), e))
	v.envelope = a.Envelope
	if a.Approval != nil {
		v.runs.Settle(a.Approval.Reference)
	}
}

func (v *single) audit(r audit.Record) {
	if v.Audit == nil {
		return
	}
	r.SessionID, r.UserID, r.ConversationID, r.Channel = v.Session.ID, v.Session.UserID, v.Session.ConversationID, v.Channel
	if r.Agent == "" {
		r.Agent, r.AgentVersion = v.Agent.Name, v.Agent.Version
	}
	v.Audit(r)
}

// Decider carries out the answers to questions of conversations that are not here. It is safe for concurrent use.
type Decider struct {
	Executor *Executor
	Tools    func() *registry.Snapshot // of the gateway; may return nil
	Audit    func(audit.Record)        // may be nil
}

// Decide runs the call that c asked about, if it was approved, and returns its answer; nil if it was declined. It writes
// the audit record. The caller has recorded the answer and then calls [execute.Executor.Settle]. An approved call
// finishes even if ctx ends. The ledger answers a repetition.
func (d Decider) Decide(ctx context.Context, c store.Confirmation, approved bool, by calls.By) *registry.Envelope {
	if !approved {
		r := calls.Decision(time.Now(), audit.Record{Mode: spec.Mode(c.Mode), TurnID: c.Turn, ToolID: c.Tool, Args: c.Args}, nil,
			calls.OutcomeDenied, by, c.Reference)
		r.ToolVersion, r.RegistryVersion = c.ToolVersion, c.RegistryVersion
		d.audit(c, r)
		return nil
	}
	id := "confirmation_" + c.Reference
	env := registry.NotFound(c.Tool, "", 0)
	tools := d.Tools().Draw(c.User, map[string]string{c.Tool: c.ToolVersion}) // the version that the person was asked about
	if tools != nil {
		env, _ = d.Executor.RunStored(ctx, id, tools, c,
			Conversation{Capabilities: []any{NoClient{}}, Audit: func(r audit.Record) { d.audit(c, r) }})
	}
	r := audit.Record{
		ToolID: c.Tool, Mode: spec.Mode(c.Mode), TurnID: c.Turn, Args: c.Args, NotDelivered: "session_over",
		ToolCall: audit.ToolCall{CallID: id, IdempotencyKey: calls.ApprovedKeys(c.Reference, "").Idempotency},
		Approval: audit.Approval{ConfirmedBy: string(by), Reference: c.Reference, Waited: max(time.Since(c.CreatedAt), 0)},
	}
	if by == calls.ByClient {
		r.NotDelivered = "" // its client made the call and waits for it
	}
	if !env.Meta.CacheHit && len(env.Intents) > 0 { // the intents of a stored answer no longer apply
		r.Refused, r.Why = audit.IntentTypes(env.Intents), "the session is over"
	}
	r = audit.Call(time.Now(), r, tools, env)
	r.RegistryVersion, r.ToolVersion = env.Meta.RegistryVersion, env.Meta.ToolVersion
	d.audit(c, r)
	return &env
}

func (d Decider) audit(c store.Confirmation, r audit.Record) {
	if d.Audit != nil {
		r.SessionID, r.UserID, r.ConversationID, r.Agent, r.Channel = c.Session, c.User, c.Conversation, c.Agent, c.Channel
		d.Audit(r)
	}
}

// NoClient implements the capabilities of text calls whose conversation has no client.
type NoClient struct{}

// Invite does nothing.
func (NoClient) Invite(registry.VoiceOffer) {}

// Origin returns "".
func (NoClient) Origin() string { return "" }

// Guarantor returns none.
func (NoClient) Guarantor() registry.Guarantor { return registry.Guarantor{} }

// Said returns nothing.
func (NoClient) Said() []registry.Utterance { return nil }

// Show does nothing: the answer has the image's URL.
func (NoClient) Show(registry.Image) {}
