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

// Memory is what another process must know of a conversation's calls to go on with it. Its JSON form
// is kept in checkpoints, so its fields are only ever added to. It shares nothing with Calls.
type Memory struct {
	// Book is what [Book.Carry] has returned.
	Book json.RawMessage `json:"book,omitempty"`
	// Open are the calls that were under way, in the order of the model's calls.
	Open []OpenCall `json:"open,omitempty"`
	// Questions are the questions that waited for the user, oldest first.
	Questions []OpenQuestion `json:"questions,omitempty"`
	// Lost are calls that write of which a process before did not learn what came; see [Calls.Restore].
	Lost []OpenCall `json:"lost,omitempty"`
}

// UnderWay reports whether a call of a turn was under way.
func (m Memory) UnderWay(turn int) bool {
	return slices.ContainsFunc(m.Open, func(c OpenCall) bool { return c.Turn == turn })
}

// OpenCall is a call of which it is not known yet what came.
type OpenCall struct {
	Call     string `json:"call"`
	Turn     int    `json:"turn,omitempty"`
	Tool     string `json:"tool"`               // that the client was told of
	Runs     string `json:"runs,omitempty"`     // that runs; it differs from Tool for ConfirmAction
	Provider string `json:"provider,omitempty"` // the provider's id of the call
	Agent    Agent  `json:"agent,omitzero"`     // that has made it
	// Writes means that the tool changes something and may have begun to.
	Writes    bool            `json:"writes,omitempty"`
	Args      json.RawMessage `json:"args,omitempty"`
	Sum       string          `json:"sum,omitempty"` // of arguments that were left out; see LeaveOutArgs
	Key       string          `json:"key,omitempty"`
	Business  string          `json:"business,omitempty"`
	By        By              `json:"by,omitempty"`        // who approved the call; empty if it needed no approval
	Reference string          `json:"reference,omitempty"` // the short name of that question
}

// OpenQuestion is a question that waits for the user.
type OpenQuestion struct {
	// Token is the secret that answers the question. It is not part of the JSON.
	Token     string `json:"-"`
	Name      string `json:"name"`
	Reference string `json:"reference"`
	Call      string `json:"call"`
	Turn      int    `json:"turn,omitempty"`
	Tool      string `json:"tool"`
	Runs      string `json:"runs"`
	Agent     Agent  `json:"agent,omitzero"` // that has asked
	// Tools are those of Agent; nil means those of the present one. They are not part of the JSON.
	Tools     *registry.Snapshot `json:"-"`
	Version   string             `json:"version,omitempty"` // of the tool
	Provider  string             `json:"provider,omitempty"`
	Args      json.RawMessage    `json:"args,omitempty"`
	Key       string             `json:"key,omitempty"`
	Business  string             `json:"business,omitempty"`
	PutAt     time.Time          `json:"put_at"`
	ExpiresAt time.Time          `json:"expires_at"`
	Told      registry.Envelope  `json:"told"` // what the model was answered, without the token
}

// maxLost is how many calls are remembered of which nobody knows what came.
const maxLost = 64

// Memory returns what another process must know.
func (c *Calls) Memory() Memory {
	m := Memory{Book: c.book.Carry(), Lost: slices.Clone(c.lost)}
	for i := range c.open {
		if k := &c.open[i]; k.put() {
			m.Questions = append(m.Questions, k.openQuestion())
		} else {
			m.Open = append(m.Open, k.openCall())
		}
	}
	return m
}

func (k *call) openCall() OpenCall {
	o := OpenCall{
		Call: k.id, Turn: k.turn, Tool: k.tool, Runs: k.runs, Provider: k.provider, Agent: k.by, Args: k.args, Key: k.keys.Idempotency, Business: k.keys.Business,
		Writes: k.prepared != nil && k.state != asking && k.prepared.Tool().SideEffects == spec.SideEffectsWrites,
	}
	if k.approval != nil {
		o.By, o.Reference = k.approval.By, k.approval.Reference
	}
	return o
}

func (k *call) openQuestion() OpenQuestion {
	q := k.question
	o := OpenQuestion{
		Token: q.token, Name: q.name, Reference: q.reference, Call: k.id, Turn: k.turn, Tool: k.tool, Runs: k.runs, Provider: k.provider, Agent: k.by,
		Args: k.args, Key: k.keys.Idempotency, Business: k.keys.Business, PutAt: q.putAt, ExpiresAt: q.expiresAt, Told: q.told,
	}
	if k.prepared != nil {
		o.Version = k.prepared.Tool().Version
	} else {
		o.Version = k.version
	}
	if request := o.Told.Error; request != nil && request.ConfirmationRequest != nil {
		e, r := *request, *request.ConfirmationRequest
		r.Token = ""
		e.ConfirmationRequest, o.Told.Error = &r, &e
	}
	return o
}

// Restore goes on with the calls of another process, before anything else is done with c. prefix
// begins the names of the calls from now on, which must differ from all earlier ones. Nobody knows
// what came of the calls that were under way: each is answered as lost, for the client and the audit.
// A call that repeats one of them that writes gets its key, so that the ledger tells what came of it.
func (c *Calls) Restore(m Memory, prefix string) []Action {
	c.prefix = prefix
	_ = c.book.Resume(m.Book) // an account that cannot be read begins anew
	for _, q := range m.Questions {
		c.open = append(c.open, c.restored(q))
	}
	c.lost = slices.Clone(m.Lost)
	var do []Action
	for _, o := range m.Open {
		if o.Writes {
			c.lost = append(c.lost, o)
		}
		do = append(do, c.loses(o))
	}
	c.lost = c.lost[max(len(c.lost)-maxLost, 0):]
	return do
}

// restored returns the call of a question. A tool that has changed since cannot be run; approve tells
// the user.
func (c *Calls) restored(q OpenQuestion) call {
	tools := cmp.Or(q.Tools, c.book.Tools())
	k := call{
		id: q.Call, by: q.Agent, tools: tools, tool: q.Tool, runs: q.Runs, turn: q.Turn, provider: q.Provider, state: waiting, args: q.Args, version: q.Version,
		keys:     Keys{Idempotency: q.Key, Business: q.Business},
		question: &question{token: q.Token, name: q.Name, reference: q.Reference, putAt: q.PutAt, expiresAt: q.ExpiresAt, told: q.Told},
	}
	if r := k.question.told.Error; r != nil && r.ConfirmationRequest != nil {
		e, request := *r, *r.ConfirmationRequest
		request.Token = q.Token
		e.ConfirmationRequest, k.question.told.Error = &request, &e
	}
	p, _ := c.book.PrepareOf(tools, q.Runs, registry.Decode(q.Args))
	if p != nil && p.Tool().Version == q.Version && string(p.Args()) == string(q.Args) {
		k.prepared = p
	}
	return k
}

// loses answers a call of which nobody knows what came.
func (c *Calls) loses(o OpenCall) Action {
	k := call{
		id: o.Call, by: o.Agent, tools: c.book.Tools(), tool: o.Tool, runs: o.Runs, turn: o.Turn, provider: o.Provider, state: running, reader: lost, args: o.Args, written: o.Args,
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

// meets gives a call that repeats a lost one the key of that one.
func (c *Calls) meets(k *call, p *registry.Prepared) {
	for _, o := range c.lost {
		if o.Reference == "" && o.Runs == p.Tool().ToolID && o.asks(p.Args()) {
			k.keys.Idempotency = o.Key
		}
	}
}

// LeaveOutArgs leaves out the arguments of a call; their sum remains, by which a repetition is recognised.
func (o *OpenCall) LeaveOutArgs() { o.Args, o.Sum = nil, sum(o.Args) }

// asks reports whether a call had these arguments.
func (o *OpenCall) asks(args json.RawMessage) bool {
	if o.Sum != "" {
		return o.Sum == sum(args)
	}
	return string(o.Args) == string(args)
}

// sum identifies the arguments of a call.
func sum(args json.RawMessage) string {
	s := sha256.Sum256(args)
	return hex.EncodeToString(s[:16])
}
