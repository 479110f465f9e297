package calls

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

func (q *OpenQuestion) waited(at time.Time) time.Duration {
	if q.PutAt.IsZero() {
		return 0
	}
	return max(at.Sub(q.PutAt), 0)
}

// ask asks the user to approve a call, unless the question is open or was asked often enough. It must be recorded
// first.
func (c *Calls) ask(k call, p *registry.Prepared) []Action {
	about := c.first(func(o *call) bool { return o.wasAsked() && o.runs == k.tool && string(o.args) == string(p.Args()) })
	if about != nil {
		return c.decided(k, Again(about.question.Answer, about.turn))
	}
	var others []string // tools with questions being recorded
	for _, o := range c.open {
		if o.state == asking {
			others = append(others, o.runs)
		}
	}
	if enough := c.book.AskedEnough(k.tool, others); enough != nil {
		env := p.Refuse(enough)
		env.Meta.DurationMS = 0
		return c.decided(k, env)
	}
	waiting := c.Questions() + len(others)
	c.setState(&k, asking)
	k.prepared, k.args = p, p.Args()
	c.open = append(c.open, k)
	if c.rules.MaxQuestions > 0 && waiting >= c.rules.MaxQuestions {
		full := registry.NewError(registry.ErrorRateLimit, prompts.TooManyQuestions)
		full.Retryable = false
		return c.finish(k.id, c.book.Refuse(k.tool, full))
	}
	return []Action{Ask(k.run())}
}

// Recorded is the result of an Ask.
type Recorded struct {
	Call    string
	Refused *registry.Envelope // the call's answer if it could not run, so that the user is not asked
	// Token is the secret that answers the question; empty if the question could not be recorded. Name does not
	// reveal the token and may be stored. Reference is the question's short name.
	Token, Name, Reference string
	ExpiresAt              time.Time
}

func (in Recorded) take(c *Calls, at time.Time) []Action { return c.Recorded(at, in) }

// Recorded reports a recorded question to the client and the model. It ignores a call that no longer waits for it.
func (c *Calls) Recorded(at time.Time, in Recorded) []Action {
	k := c.find(in.Call)
	switch {
	case k == nil || k.state != asking:
		return nil
	case in.Refused != nil:
		return c.finish(k.id, *in.Refused)
	case in.Token == "":
		return c.finish(k.id, k.prepared.Refuse(registry.NewError(registry.ErrorTransient, prompts.CouldNotAskForApproval)))
	}
	q, p := *k, k.prepared
	c.setState(&q, waiting)
	q.written, q.question = nil, &OpenQuestion{
		Token: in.Token, Name: in.Name, Reference: in.Reference, Call: q.id, Turn: q.turn, Tool: q.tool, Runs: q.runs, Agent: q.by,
		Version: p.Tool().Version, Provider: q.provider, Args: q.args, Key: q.keys.Idempotency, Business: q.keys.Business,
		PutAt: at, ExpiresAt: in.ExpiresAt, Answer: Question(p, in.Token, in.Reference, in.ExpiresAt, c.rules),
	}
	c.book.Asked(q.runs, in.Name)
	answers := c.finish(q.id, q.question.Answer)
	c.open = append(c.open, q)
	request := &protocol.ConfirmationRequest{Header: protocol.Header{Turn: q.turn}, Token: in.Token, Tool: q.tool,
		Args: q.args, Preview: p.Preview(), ExpiresAt: protocol.Time{Time: in.ExpiresAt}}
	return append([]Action{ToClient{request}}, answers...)
}

// Recall restores an open question of an earlier message. env is its CONFIRMATION_REQUIRED without the token.
func (c *openCalls) Recall(env registry.Envelope, turn int) {
	q := env.Error.ConfirmationRequest
	c.open = append(c.open, call{
		runs: q.Tool, turn: turn, state: waiting, args: json.RawMessage(registry.Decode(q.Args).Text()),
		question: &OpenQuestion{Answer: env},
	})
}

func (c *openCalls) asked(token string) *call {
	return c.first(func(k *call) bool { return k.wasAsked() && k.question.Token == token && token != "" })
}

// Knows reports whether the question with that token is open.
func (c *openCalls) Knows(token string) bool { return c.asked(token) != nil }

// Waits reports whether the question with that token waits for the user.
func (c *openCalls) Waits(token string) bool {
	k := c.asked(token)
	return k != nil && k.state == waiting
}

// Answered handles the user's answer from the client.
func (c *Calls) Answered(token string, approved bool) []Action {
	k := c.asked(token)
	if k == nil {
		why := RefusedUnknown
		if i := slices.IndexFunc(c.resolved, func(r resolved) bool { return r.token == token }); i >= 0 {
			if why = RefusedUsed; c.resolved[i].outcome == OutcomeExpired {
				why = RefusedExpired
			}
		}
		return []Action{Refused{Why: why}}
	}
	if k.state == resolving {
		return []Action{Refused{Why: RefusedUsed, Known: true}}
	}
	c.setState(k, resolving)
	return []Action{Resolve{Token: token, Approved: approved, By: ByClient}}
}

// Resolved is the recorded answer to a question.
type Resolved struct {
	Token   string
	Outcome Outcome
	By      By
}

func (in Resolved) take(c *Calls, at time.Time) []Action { return c.Resolved(at, in) }

// Resolved handles the recorded answer to a question.
func (c *Calls) Resolved(at time.Time, in Resolved) []Action {
	k := c.asked(in.Token)
	if k == nil {
		return []Action{Refused{Why: RefusedUsed, Known: true}}
	}
	var spoken *call // the ConfirmAction with the answer
	if o := c.first(func(o *call) bool { return o.into == k.id }); o != nil {
		confirm := c.remove(o.id)
		spoken, k = &confirm, c.asked(in.Token)
	}
	if in.Outcome == OutcomeFailed {
		if k.state == resolving {
			c.setState(k, waiting)
		}
		do := []Action{Refused{Why: RefusedStore, Known: true}}
		if spoken != nil {
			do = append(do, c.refuse(*spoken, registry.NewError(registry.ErrorTransient, prompts.AnswerNotRecorded))...)
		}
		return do
	}
	q := c.remove(k.id)
	c.setState(&q, answered)
	c.resolved = append(c.resolved, resolved{in.Token, in.Outcome})
	c.resolved = c.resolved[max(len(c.resolved)-maxResolved, 0):]
	c.book.Resolved(q.question.Name)
	do := []Action{ToClient{&protocol.ConfirmationEnded{Header: protocol.Header{Turn: q.turn}, Token: in.Token, Tool: q.tool,
		Outcome: string(in.Outcome)}}}
	if in.Outcome == OutcomeApproved {
		c.book.Approved(q.runs, q.question.Name)
		a := Approved{Tool: q.runs, Reference: q.question.Reference, Model: q.model, Provider: q.provider, By: in.By, Agent: q.by,
			Tools: q.tools, Prepared: q.prepared, Args: q.args, Asked: q.question.Version,
			Keys: ApprovedKeys(q.question.Reference, q.keys.Business), Waited: q.question.waited(at)}
		if spoken == nil {
			return append(do, a)
		}
		if !spoken.reader.wants() {
			spoken.reader, spoken.model = byNotice, ""
		}
		return append(do, c.approve(at, *spoken, a)...)
	}
	record := Decision(at, audit.Record{
		Agent: q.by.Name, AgentVersion: q.by.Version, Mode: c.book.rules.Mode, TurnID: q.turn, ToolID: q.runs,
		ToolCall: audit.ToolCall{ProviderCallID: q.provider}, Args: q.args, Approval: audit.Approval{Waited: q.question.waited(at)},
	}, q.tools, in.Outcome, in.By, q.question.Reference)
	do = append(do, Declined{Tool: q.tool, Reference: q.question.Reference, Model: q.model, Outcome: in.Outcome,
		ByCall: spoken != nil, Record: record})
	if spoken == nil {
		return do
	}
	env := c.book.Refuse(q.tool, registry.NewError(registry.ErrorPermanent,
		prompts.ApprovalNotGiven(OutcomeNotice(q.tool, q.question.Reference, in.Outcome))))
	return append(do, c.answer(spoken, env, false))
}

// Decision returns the audit record of an answer to a question that ran nothing; r and tools are as in [audit.Call].
func Decision(at time.Time, r audit.Record, tools *registry.Snapshot, o Outcome, by By, reference string) audit.Record {
	r = audit.Call(at, r, tools, registry.Envelope{})
	r.Event, r.Delivered = audit.EventConfirmation, false
	r.Confirmation, r.ConfirmedBy, r.Reference = string(o), string(by), reference
	return r
}

// Approve runs an approved call in a turn begun for it. It is refused only if it would repeat an action.
func (c *Calls) Approve(at time.Time, turn int, a Approved) []Action {
	k, do := c.begin(at, Called{Turn: turn, Provider: a.Provider, Tool: a.Tool, Args: a.Args})
	k.reader = byNotice
	return append(do, c.approve(at, k, a)...)
}

func (c *Calls) approve(at time.Time, k call, a Approved) []Action {
	if a.Tools != nil {
		k.by, k.tools = a.Agent, a.Tools
	}
	k.approval, k.runs, k.keys, k.asked, k.into, k.budget = &a, a.Tool, a.Keys, string(a.Args), "", nil
	if a.Prepared != nil {
		if do, settled := c.duplicate(at, k, a.Prepared); settled {
			return do
		}
	}
	c.book.Charge(k.tools, a.Tool)
	k.budget = c.book.Usage()
	switch {
	case a.Prepared != nil:
		return c.queue(at, k, a.Prepared)
	case a.Asked != "":
		k.args = a.Args
		now := toolOf(c.book.tools, a.Tool).Version
		return c.refuse(k, registry.NewError(registry.ErrorConflict, prompts.ToolChanged(a.Tool, a.Asked, now)))
	}
	c.setState(&k, running)
	k.args = a.Args
	c.open = append(c.open, k)
	return nil
}

// ApprovedKeys returns the keys of an approved call.
func ApprovedKeys(reference, business string) Keys {
	return Keys{Idempotency: "confirmation:" + reference, Business: business}
}

// confirmAction handles the model's report of a spoken answer. An approval counts only if the user has spoken since.
func (c *Calls) confirmAction(k call, spokenAt time.Time) []Action {
	c.book.Charge(c.book.tools, ConfirmAction)
	k.budget = c.book.Usage()
	refuse := func(t registry.ErrorType, words prompts.Words) []Action {
		return c.refuse(k, registry.NewError(t, words))
	}
	args := registry.Decode(k.written)
	reference, _ := args.Value("reference").(string)
	approved, answered := args.Value("approved").(bool)
	if reference == "" || !answered {
		return refuse(registry.ErrorValidation, prompts.ConfirmActionArguments)
	}
	q := c.first(func(o *call) bool { return o.wasAsked() && o.question.Reference == reference })
	switch {
	case q == nil || q.state == resolving:
		return refuse(registry.ErrorNotFound, prompts.NoSuchQuestion)
	case approved && !q.question.PutAt.Before(spokenAt):
		return refuse(registry.ErrorConfirmationRequired, prompts.UserHasNotSpoken)
	}
	c.setState(q, resolving)
	c.setState(&k, joined)
	k.into = q.id
	do := []Action{Resolve{Token: q.question.Token, Approved: approved, By: BySpoken}}
	c.open = append(c.open, k)
	return do
}

// OutcomeNotice returns the model's notice about a question that ran nothing.
func OutcomeNotice(tool, reference string, o Outcome) string {
	switch o {
	case OutcomeDenied:
		return prompts.DeclinedNotice(tool, reference)
	case OutcomeUsed:
		return prompts.AnsweredNotice(tool, reference)
	default:
		return prompts.ExpiredNotice(tool, reference)
	}
}

// ConfirmAction is the tool with which a model reports a spoken approval, if the operator allows that.
const ConfirmAction = spec.ConfirmAction

// Question returns the CONFIRMATION_REQUIRED answer to a call.
func Question(p *registry.Prepared, token, reference string, expires time.Time, rules *Rules) registry.Envelope {
	tool := p.Tool().ToolID
	words := prompts.ApprovalNeeded(tool)
	switch {
	case rules.Keypad:
		words = prompts.ApprovalNeededByKey(tool)
	case rules.Spoken:
		words = prompts.ApprovalNeededAloud(tool, ConfirmAction, reference)
	}
	e := registry.NewError(registry.ErrorConfirmationRequired, words)
	e.Details, _ = json.Marshal(map[string]string{"reference": reference}) // only strings: it cannot fail
	e.ConfirmationRequest = &registry.ConfirmationRequest{
		Token: token, Tool: tool, Args: p.Args(), Preview: p.Preview(),
		ExpiresAt: expires.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	return p.Refuse(e)
}
