package calls

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Memory is what another process needs of a conversation's calls. Fields of its JSON form are only ever added.
type Memory struct {
	Book      json.RawMessage `json:"book,omitempty"`      // the result of [Book.Carry]
	Open      []OpenCall      `json:"open,omitempty"`      // the calls under way, in the model's order
	Questions []OpenQuestion  `json:"questions,omitempty"` // the open questions, oldest first
	// Lost are writing calls of a previous process with unknown outcomes; see [Calls.Restore].
	Lost []OpenCall `json:"lost,omitempty"`
	// Effects are those of finished calls, for [Calls.Unmatched].
	Effects []ClaimEffect `json:"effects,omitempty"`
}

// UnderWay reports whether a call of a turn was open.
func (m Memory) UnderWay(turn int) bool {
	return slices.ContainsFunc(m.Open, func(c OpenCall) bool { return c.Turn == turn })
}

// OpenCall is a call without a result.
type OpenCall struct {
	Call      string          `json:"call"`
	Turn      int             `json:"turn,omitempty"`
	Tool      string          `json:"tool"`               // as the client knows it
	Runs      string          `json:"runs,omitempty"`     // differs from Tool for ConfirmAction
	Provider  string          `json:"provider,omitempty"` // the provider's id of the call
	Agent     Agent           `json:"agent,omitzero"`     // that made the call
	Writes    bool            `json:"writes,omitempty"`   // the tool changes something and may have begun to
	Args      json.RawMessage `json:"args,omitempty"`
	Sum       string          `json:"sum,omitempty"` // of left-out arguments; see LeaveOutArgs
	Key       string          `json:"key,omitempty"`
	Business  string          `json:"business,omitempty"`
	By        By              `json:"by,omitempty"`        // the approval's source; empty if none was needed
	Reference string          `json:"reference,omitempty"` // of that question
}

// OpenQuestion is a question that waits for the user.
type OpenQuestion struct {
	Token     string             `json:"-"` // the secret that answers it; empty for one of an earlier message
	Name      string             `json:"name"`
	Reference string             `json:"reference"`
	Call      string             `json:"call"`
	Turn      int                `json:"turn,omitempty"`
	Tool      string             `json:"tool"`
	Runs      string             `json:"runs"`
	Agent     Agent              `json:"agent,omitzero"`    // that asked
	Tools     *registry.Snapshot `json:"-"`                 // those of Agent; nil means the current agent's
	Version   string             `json:"version,omitempty"` // of the tool
	Provider  string             `json:"provider,omitempty"`
	Args      json.RawMessage    `json:"args,omitempty"`
	Key       string             `json:"key,omitempty"`
	Business  string             `json:"business,omitempty"`
	PutAt     time.Time          `json:"put_at"`
	ExpiresAt time.Time          `json:"expires_at"`
	Answer    registry.Envelope  `json:"told"` // the model's answer, without the token
}

// maxLost limits the remembered calls with unknown outcomes.
const maxLost = 64

// Memory returns what another process needs. It shares nothing with c.
func (c *Calls) Memory() Memory {
	m := Memory{Book: c.book.Carry(), Lost: slices.Clone(c.before().lost), Effects: c.before().effects}
	for i := range c.open {
		if k := &c.open[i]; k.wasAsked() {
			q := *k.question
			q.Answer = withToken(q.Answer, "")
			m.Questions = append(m.Questions, q)
		} else {
			m.Open = append(m.Open, k.openCall())
		}
	}
	return m
}

func (k *call) openCall() OpenCall {
	o := OpenCall{
		Call: k.id, Turn: k.turn, Tool: k.tool, Runs: k.runs, Provider: k.provider, Agent: k.by, Args: k.args,
		Key: k.keys.Idempotency, Business: k.keys.Business,
		Writes: k.prepared != nil && k.state != asking && k.prepared.Tool().SideEffects == spec.SideEffectsWrites,
	}
	if k.approval != nil {
		o.By, o.Reference = k.approval.By, k.approval.Reference
	}
	return o
}

// withToken returns a model's CONFIRMATION_REQUIRED with another token.
func withToken(env registry.Envelope, token string) registry.Envelope {
	if env.Error != nil && env.Error.ConfirmationRequest != nil {
		e, request := *env.Error, *env.Error.ConfirmationRequest
		request.Token = token
		e.ConfirmationRequest, env.Error = &request, &e
	}
	return env
}

// Restore continues with the calls of another process, before any other method. prefix begins later names and must be
// new. Open calls are answered as lost. A later call that repeats a writing one gets its key, so that the ledger knows
// the outcome.
func (c *Calls) Restore(m Memory, prefix string) []Action {
	c.prefix = prefix
	_ = c.book.Resume(m.Book) // an unreadable account starts again at zero
	for _, q := range m.Questions {
		c.open = append(c.open, c.restoreQuestion(q))
	}
	lost, effects := slices.Clone(m.Lost), slices.Clone(m.Effects[max(len(m.Effects)-maxEffects, 0):])
	var do []Action
	for _, o := range m.Open {
		if o.Writes {
			lost = append(lost, o)
		}
		do = append(do, c.answerLost(o))
	}
	c.past = &past{lost[max(len(lost)-maxLost, 0):], effects}
	return do
}

// restoreQuestion returns the call of a question. A tool that has changed since cannot run; approve reports that.
func (c *Calls) restoreQuestion(q OpenQuestion) call {
	tools := cmp.Or(q.Tools, c.book.tools)
	q.Tools, q.Answer = nil, withToken(q.Answer, q.Token)
	k := call{
		id: q.Call, by: q.Agent, tools: tools, tool: q.Tool, runs: q.Runs, turn: q.Turn, provider: q.Provider, state: waiting,
		args: q.Args, keys: Keys{Idempotency: q.Key, Business: q.Business}, question: &q,
	}
	p, _ := c.book.Prepare(tools, q.Runs, registry.Decode(q.Args))
	if p != nil && p.Tool().Version == q.Version && string(p.Args()) == string(q.Args) {
		k.prepared = p
	}
	return k
}

func (c *Calls) answerLost(o OpenCall) Action {
	k := call{
		id: o.Call, by: o.Agent, tools: c.book.tools, tool: o.Tool, runs: o.Runs, turn: o.Turn, provider: o.Provider,
		state: running, reader: lost, args: o.Args, written: o.Args,
		keys: Keys{Idempotency: o.Key, Business: o.Business},
	}
	if o.Reference != "" {
		k.approval = &Approved{Tool: o.Runs, Reference: o.Reference, By: o.By}
	}
	why := registry.NewError(registry.ErrorTransient, prompts.LostRead(o.Tool))
	if o.Writes {
		why = registry.NewError(registry.ErrorConflict, prompts.LostWrite(o.Tool))
		why.PartialSideEffects, why.Retryable = true, false
	}
	return c.answer(&k, c.book.Refuse(o.Tool, why), false)
}

func (c *Calls) adoptLostKey(k *call, p *registry.Prepared) {
	for _, o := range c.before().lost {
		if o.Reference == "" && o.Runs == p.Tool().ToolID && o.hasArgs(p.Args()) {
			k.keys.Idempotency = o.Key
		}
	}
}

// LeaveOutArgs replaces the arguments by their hash, which still identifies a repetition.
func (o *OpenCall) LeaveOutArgs() { o.Args, o.Sum = nil, sum(o.Args) }

func (o *OpenCall) hasArgs(args json.RawMessage) bool {
	if o.Sum != "" {
		return o.Sum == sum(args)
	}
	return string(o.Args) == string(args)
}

func sum(args json.RawMessage) string {
	s := sha256.Sum256(args)
	return hex.EncodeToString(s[:16])
}
