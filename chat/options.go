package chat

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// Conversations stores conversations; *store.Conversations implements it.
type Conversations interface {
	Load(ctx context.Context, id string) (*conversation.Conversation, store.Revision, error)
	Save(ctx context.Context, c *conversation.Conversation, rev store.Revision) (store.Revision, error)
	Lease(ctx context.Context, id string, d time.Duration) (store.Held, error)
}

// Approvals lists the approved actions with an unknown outcome; *store.Approvals implements it.
type Approvals interface {
	OpenIn(ctx context.Context, conversation string, now time.Time) ([]store.Approval, error)
	Told(ctx context.Context, a store.Approval) error
}

// Answers stores the state of messages; *store.Answers implements it.
type Answers interface {
	Load(ctx context.Context, name string) (data []byte, rev store.Revision, err error)
	Save(ctx context.Context, name string, data []byte, rev store.Revision, life time.Duration) (store.Revision, error)
}

// Options configure an Agent. Model, Executor and Conversations are required.
type Options struct {
	Model         Model
	Executor      *execute.Executor
	Conversations Conversations
	// Answers stores the state of messages, for clients that send a message again to another
	// process. If it is nil, only this process knows them.
	Answers Answers
	// Approvals are reported to their conversations, once each. Nil if the store has none.
	Approvals Approvals
	// Jobs tells of long work that has ended. Nil means that calls begin none.
	Jobs Jobs
	// Vision means that Model accepts images.
	Vision bool
	// Persona answers requests that name no other one. Its empty name means "default".
	Persona Persona
	// Personas returns the persona with that name as it is now; nil if no persona has that name. It must not wait.
	// Nil means that there is Persona alone.
	Personas func(name string) *Persona
	// Tools returns the current snapshot of the tools, which a turn holds. Nil means no tools.
	Tools func() *registry.Snapshot
	// Live returns the live values with which a turn's tools are filled; see registry.Snapshot.Fill. It
	// may be nil, is called concurrently, and must not wait.
	Live registry.LiveValues
	// Instructions makes the system text from the persona, its tools, the mark and the IANA name of the
	// user's time zone, which is empty if it is not known. The text must explain
	// the mark to the model: it stands before the gateway's own messages. Nil means no system text.
	Instructions func(p *Persona, tools *registry.Snapshot, own prompts.Mark, timeZone string) string
	// Rules are the rules for tool calls. Rules.Mode is ignored: it is always text.
	Rules calls.Policy
	// Audit receives the records of tool calls, and must not block. Nil discards them.
	Audit func(audit.Record)
	// Observe is told of each attempt at a turn that has ended. It may be called concurrently, and must
	// not block. Nil means nobody.
	Observe func(TurnOver)
	// Follow is told of each attempt at a turn that begins, and returns what is told of what happens in it. It
	// may be called concurrently and must not block. Nil means nobody.
	Follow func(Opening) Followed
	// Bill counts what an attempt at a turn has used and returns what it has cost. It must not block.
	// Nil counts nothing.
	Bill func(Bill) cost.Amount
	// MaxMessage is the maximum length of a message, in characters. Zero means 16,000.
	MaxMessage int
	// MaxHistory is how much of the conversation the model gets, in characters. Zero means
	// 48,000.
	MaxHistory int
	// TurnTime bounds one turn. Zero means 5 minutes.
	TurnTime time.Duration
	// Logger gets a line for each turn. Nil means no logging.
	Logger *slog.Logger
}

// TurnOver is how an attempt at a turn has ended.
type TurnOver struct {
	// Status is protocol.DoneCompleted or protocol.DoneFailed.
	Status string
	// Code is the code of the error that the client was told of, one of the codes of package protocol; empty without
	// one.
	Code string
	// Took is how long the attempt took, and First how long until its first piece of text; zero if
	// there was none.
	Took, First time.Duration
	// Usage is what it has used.
	Usage Usage
}

// Bill is what an attempt at a turn has used.
type Bill struct {
	ConversationID string
	Turn           int
	User           user.User
	Key            string // of Request
	// Agent is the persona that has answered, AgentVersion its version.
	Agent, AgentVersion string
	Usage               Usage
	// Estimated is how many answers of the model came without their usage, so that Usage has a guess.
	Estimated int64
}

func (o Options) withDefaults() Options {
	o.Persona.Name = cmp.Or(o.Persona.Name, setting.AgentName)
	o.MaxMessage = cmp.Or(o.MaxMessage, conversation.MaxText)
	o.MaxHistory = cmp.Or(o.MaxHistory, 48_000)
	o.TurnTime = cmp.Or(o.TurnTime, 5*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Rules.Mode = spec.ModeText
	return o
}
