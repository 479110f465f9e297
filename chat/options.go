package chat

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// Conversations stores conversations; *store.Conversations implements it.
type Conversations interface {
	Load(ctx context.Context, id string) (*conversation.Conversation, store.Revision, error)
	Save(ctx context.Context, c *conversation.Conversation, rev store.Revision) (store.Revision, error)
	Lease(ctx context.Context, id string, d time.Duration) (store.Held, error)
}

// Answers stores the state of messages; *store.Answers implements it.
type Answers interface {
	Load(ctx context.Context, name string) (data []byte, rev store.Revision, err error)
	Save(ctx context.Context, name string, data []byte, rev store.Revision, life time.Duration) (store.Revision, error)
}

// Options configures an Agent. Model, Executor and Conversations are required.
type Options struct {
	Model         textmodel.Model
	Executor      *execute.Executor
	Conversations Conversations
	Answers       Answers           // lets clients repeat a message to another process. Nil keeps the state in this process only.
	Approvals     execute.Approvals // reported to their conversations, once each; nil if the store has none
	Jobs          execute.EndedJobs // reported likewise; nil disables jobs
	Vision        bool              // Model accepts images
	Persona       Persona           // answers requests that name no other. An empty name means "default".
	// Personas returns the current persona of that name, or nil. It must not block. Nil means only Persona exists.
	Personas func(name string) *Persona
	Tools    func() *registry.Snapshot // returns the current snapshot of tools; nil means no tools
	// Live provides the values of dynamic tools; see registry.Snapshot.Fill. It must not block and must be safe for
	// concurrent use. May be nil.
	Live registry.LiveValues
	// Instructions makes the system text. It must explain the mark, which precedes the gateway's own messages.
	// timeZone is an IANA name or empty. Nil means no system text.
	Instructions func(p *Persona, tools *registry.Snapshot, own prompts.Mark, timeZone string) string
	Checks       *checks.Set          // check the assistant's words before the client gets them; nil checks nothing
	Claims       calls.ClaimLanguages // the languages in which the assistant's claims are checked
	Rules        calls.Policy         // the rules for tool calls. Rules.Mode is ignored: it is always text.
	Audit        func(audit.Record)   // receives the records of tool calls. It must not block. Nil discards them.
	// Observe is called at the end of each attempt at a turn. It must not block and must be safe for concurrent use.
	// May be nil.
	Observe func(TurnOver)
	// Follow is called at the start of each attempt at a turn and returns the receiver of its steps. It must not
	// block and must be safe for concurrent use. May be nil.
	Follow func(Opening) Followed
	// Bill counts the usage of an attempt and returns its cost. It must not block. May be nil.
	Bill   func(Bill) cost.Amount
	Logger *slog.Logger // gets a line for each turn; nil disables logging
}

// TurnOver is the outcome of an attempt at a turn.
type TurnOver struct {
	Status      string        // protocol.DoneCompleted or protocol.DoneFailed
	Code        string        // the error code that the client received; empty without an error
	Took, First time.Duration // Took is the attempt's duration and First the time to the first text; zero without text
	Usage       textmodel.Usage
}

// Bill is the usage of an attempt at a turn.
type Bill struct {
	ConversationID      string
	Turn                int
	User                user.User
	Key                 string // Request.Key
	Agent, AgentVersion string // Agent and AgentVersion identify the persona that answered
	Usage               textmodel.Usage
	Estimated           int64 // counts model answers without a usage report; Usage then contains an estimate
}

func (o Options) withDefaults() Options {
	o.Persona.Name = cmp.Or(o.Persona.Name, setting.AgentName)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Rules.Mode = spec.ModeText
	return o
}

// Opening describes an attempt at a turn that begins.
type Opening struct {
	ConversationID, Agent string
	Turn                  int
	At                    time.Time
	Parent                protocol.TraceParent // the client's trace span; zero without one
	Said                  string               // the user's text; may be empty
}

// Followed receives the steps of one attempt at a turn.
type Followed struct {
	Take func(Step)           // receives the steps in order, from one goroutine. It must not block. It may be nil.
	Span protocol.TraceParent // the parent span for whatever happens in the turn
}

// Step is an event in a turn. One field is set in addition to At.
type Step struct {
	At      time.Time
	Replied *Replied // an answer of the model, complete or not
	// Did are decisions about calls. Got is the result of a call.
	Did []calls.Action
	Got calls.Input
	// Over is the outcome of the attempt and Cost its cost. It is the last step.
	Over *TurnOver
	Cost cost.Amount
}

// Replied is the model's answer to a prompt.
type Replied struct {
	Began, First time.Time // Began is the time of the request and First that of the first text; zero without text
	Reply        textmodel.Reply
	Err          error // explains an incomplete Reply: a *ModelError, or the context's error
}

func (t *turn) follow() {
	if t.a.opts.Follow == nil {
		return
	}
	t.follower = t.a.opts.Follow(Opening{
		ConversationID: t.conv.ID, Agent: t.persona.Name, Turn: t.number, At: time.Now(), Parent: t.req.Parent,
		Said: textmodel.InWords(t.req.Message, t.req.Parts),
	})
}

func (t *turn) report(s Step) {
	if t.follower.Take != nil {
		s.At = time.Now()
		t.follower.Take(s)
	}
}
