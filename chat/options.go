package chat

import (
	"context"
	"log/slog"
	"time"

	"voicegw/audit"
	"voicegw/config/defaults"
	"voicegw/conversation"
	"voicegw/internal/mark"
	"voicegw/orchestrator/execute"
	"voicegw/orchestrator/policy"
	"voicegw/registry"
	"voicegw/store"
)

// Conversations keeps what was said; *store.Conversations is one.
type Conversations interface {
	Load(ctx context.Context, id string) (*conversation.Conversation, store.Revision, error)
	Save(ctx context.Context, c *conversation.Conversation, rev store.Revision) (store.Revision, error)
	Lease(ctx context.Context, id string, d time.Duration) (release func(), err error)
}

// Approvals are the approved actions whose outcome nobody knows; *store.Approvals is one.
type Approvals interface {
	OpenIn(ctx context.Context, conversation string, now time.Time) ([]store.Approval, error)
	Told(ctx context.Context, a store.Approval) error
}

// Answers keeps what became of messages; *store.Answers is one.
type Answers interface {
	Load(ctx context.Context, name string) (data []byte, rev store.Revision, err error)
	Save(ctx context.Context, name string, data []byte, rev store.Revision, life time.Duration) (store.Revision, error)
}

// Options is what an Agent needs. Model, Executor and Conversations must be set.
type Options struct {
	Model         Model
	Executor      *execute.Executor
	Conversations Conversations
	// Answers keeps what became of messages, for clients that send one again to another
	// process. Nil: this process alone knows.
	Answers Answers
	// Approvals are told to their conversations, once each. Nil if the store keeps no approvals.
	Approvals Approvals
	// Vision says that Model takes images.
	Vision bool
	// Name is the agent's, for requests that ask for one; empty means "default".
	Name string
	// Tools returns the snapshot that a turn is to hold. Nil: there are no tools.
	Tools func() *registry.Snapshot
	// Instructions makes the system text from the tools and from the mark that the gateway's
	// own messages to the model begin with, which the text must name. Nil means none.
	Instructions func(tools *registry.Snapshot, own mark.Mark) string
	// Rules are the rules for tool calls; their mode is text, whatever they say.
	Rules policy.Rules
	// Audit takes the records of what tools did, and must not block. Nil discards.
	Audit func(audit.Record)
	// MaxMessage is the longest message, in characters. Zero means 16,000.
	MaxMessage int
	// MaxHistory is how much of the conversation the model is given, in characters. Zero
	// means 48,000.
	MaxHistory int
	// TurnTime bounds one turn. Zero means 5 minutes.
	TurnTime time.Duration
	// Logger gets a line for each turn. Nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = defaults.AgentName
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = conversation.MaxText
	}
	if o.MaxHistory == 0 {
		o.MaxHistory = 48_000
	}
	if o.TurnTime == 0 {
		o.TurnTime = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Rules.Mode = registry.ModeText
	return o
}
