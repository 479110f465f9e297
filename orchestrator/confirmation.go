package orchestrator

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
)

// ConfirmAction is the tool with which a model confirms what the user has agreed to
// aloud, where [Policy.SpokenConfirmation].
const ConfirmAction = policy.ConfirmAction

// confirmation is a question that the user has not answered yet.
type confirmation struct {
	token     string
	reference string // its short name, which the model knows it by
	tool      string
	turn      int
	provider  string // the provider's id of the call
	prepared  *registry.Prepared
	askedAt   time.Time
	expiresAt time.Time
	resolving bool   // an answer is being recorded
	spokenBy  string // the call of ConfirmAction that answers it; empty for a button
}

// approval is how an action came to be approved.
type approval struct {
	tool      string
	reference string
	by        ConfirmedBy
}

// resolution remembers a question that was answered.
type resolution struct {
	token   string
	outcome Outcome
}

// ask has the question to the user made: it must be recorded before anybody is told.
func (m *machine) ask(c call, p *registry.Prepared) {
	c.prepared = p
	waiting := len(m.confirmations) + len(slices.DeleteFunc(slices.Clone(m.calls), func(c call) bool { return !c.asking() }))
	m.calls = append(m.calls, c)
	if waiting >= maxConfirmations {
		e := registry.NewError(registry.ErrorRateLimit, toolerror.TooManyQuestions())
		e.Retryable = false
		m.answerAll(c.id, m.book.Finished(c.id, m.book.Refuse(c.tool, e), 0))
		return
	}
	m.call(c.id).progressAt = time.Time{}
	m.do(AskConfirmation{Turn: c.turn, Call: c.id, Prepared: p, Keys: c.keys})
}

// asking says whether the question is being recorded: nothing runs.
func (c call) asking() bool { return c.prepared != nil && c.progressAt.IsZero() && c.confirmed == nil }

// confirmationAsked tells the model and the client of a question that is recorded.
func (m *machine) confirmationAsked(in ConfirmationAsked) {
	c := m.call(in.Call)
	if c == nil || !c.asking() {
		return
	}
	p := c.prepared
	if in.Refused != nil {
		m.answerAll(c.id, m.book.Finished(c.id, *in.Refused, 0))
		return
	}
	if in.Token == "" {
		m.answerAll(c.id, m.book.Finished(c.id, m.book.NotAsked(p), 0))
		return
	}
	env := m.book.Question(p, in.Token, in.Reference, in.ExpiresAt, m.policy.SpokenConfirmation)
	m.confirmations = append(m.confirmations, confirmation{
		token: in.Token, reference: in.Reference, tool: c.tool, turn: c.turn, provider: c.provider,
		prepared: p, askedAt: m.at, expiresAt: in.ExpiresAt,
	})
	m.do(ConfirmationRequest{Turn: c.turn, Token: in.Token, Tool: c.tool, Args: p.Args(), Preview: p.Preview(), ExpiresAt: in.ExpiresAt})
	m.answerAll(c.id, m.book.Asked(c.id, in.Token, env))
}

// confirmationAnswer takes the user's answer from the client.
func (m *machine) confirmationAnswer(in ConfirmationAnswer) {
	i := m.confirmation(in.Token)
	if i < 0 {
		failure := FailureConfirmationUnknown
		for _, r := range m.resolved {
			if r.token == in.Token {
				failure = r.outcome.failure()
			}
		}
		m.do(Failed{Failure: failure})
		return
	}
	if m.confirmations[i].resolving {
		m.do(Failed{Turn: m.Turn(), Failure: FailureConfirmationUsed})
		return
	}
	if m.ending() {
		m.do(Failed{Turn: m.Turn(), Failure: FailureEnding})
		return
	}
	m.lastActive = m.at
	m.confirmations[i].resolving = true
	m.do(ResolveConfirmation{Token: in.Token, Approved: in.Approved, By: ConfirmedByClient})
}

func (m *machine) confirmation(token string) int {
	return slices.IndexFunc(m.confirmations, func(c confirmation) bool { return c.token == token })
}

// confirmationResolved takes what was recorded as the answer to a question.
func (m *machine) confirmationResolved(in ConfirmationResolved) {
	i := m.confirmation(in.Token)
	if i < 0 {
		m.do(Failed{Turn: m.Turn(), Failure: FailureConfirmationUsed})
		return
	}
	c := m.confirmations[i]
	if in.Outcome == OutcomeFailed {
		m.confirmations[i].resolving, m.confirmations[i].spokenBy = false, ""
		m.do(Failed{Turn: m.Turn(), Failure: FailureStore, Retryable: true})
		m.confirmActionFailed(c.spokenBy)
		return
	}
	m.confirmations = slices.Delete(m.confirmations, i, i+1)
	m.resolved = append(m.resolved, resolution{c.token, in.Outcome})
	if len(m.resolved) > maxResolved {
		m.resolved = slices.Delete(m.resolved, 0, 1)
	}
	m.book.Resolved(c.token)
	m.do(ConfirmationEnded{Turn: c.turn, Token: c.token, Tool: c.tool, Outcome: in.Outcome})
	if in.Outcome == OutcomeApproved {
		m.approved(c, in.By)
		return
	}
	m.do(Audit{Record: m.outcomeRecord(c, in.Outcome, in.By)})
	if spoken := m.call(c.spokenBy); spoken != nil {
		said := *spoken
		m.forgetCall(said.id)
		m.conclude(said, m.declined(c, in.Outcome), false)
		return
	}
	m.notify(notice{text: outcomeNotice(c, in.Outcome), now: in.Outcome == OutcomeDenied})
}

// declined answers a ConfirmAction that was not approved in the end.
func (m *machine) declined(c confirmation, o Outcome) registry.Envelope {
	return m.book.Refuse(c.tool, registry.NewError(registry.ErrorPermanent, toolerror.NotApproved(outcomeNotice(c, o))))
}

// approved runs what a person has approved: the stored arguments, in a turn of their
// own, or as the answer to the model's ConfirmAction.
func (m *machine) approved(q confirmation, by ConfirmedBy) {
	m.book.Approved(q.tool, q.token)
	how := &approval{tool: q.tool, reference: q.reference, by: by}
	var c call
	if spoken := m.call(q.spokenBy); spoken != nil {
		c = *spoken
		m.forgetCall(c.id)
		if !c.open() {
			c.model, c.superseded, c.cancelled = "", false, false
		}
	} else {
		if m.phase != PhaseEnded {
			m.interrupt(FlushUserAction)
			if m.responding {
				m.cancel()
			}
			m.openCausedTurn()
		}
		c = m.newCall(q.tool, q.prepared.Args())
		c.provider = q.provider
		m.do(ToolStarted{Turn: c.turn, Call: c.id, Tool: c.tool})
	}
	c.confirmed = how
	d := m.book.Confirmed(policy.Call{ID: c.id, ProviderID: q.provider, Tool: q.tool, Args: q.prepared.Args(), Turn: c.turn}, q.reference, q.prepared)
	c.keys, c.budget = d.Keys, d.Budget
	switch d.Verdict {
	case policy.Run:
		m.run(c, q.prepared)
	case policy.Joined:
		c.into = d.Into
		m.calls = append(m.calls, c)
	default:
		m.conclude(c, d.Envelope, false)
	}
}

// confirmAction is the model's word that the user has agreed. It counts only for a
// question that is open, and if the user has spoken since it was asked.
func (m *machine) confirmAction(c call, raw json.RawMessage) {
	c.budget = m.book.Charge(ConfirmAction)
	var args struct {
		Reference string `json:"reference"`
		Approved  *bool  `json:"approved"`
	}
	refuse := func(t registry.ErrorType, words toolerror.Words) {
		m.conclude(c, m.book.Refuse(ConfirmAction, registry.NewError(t, words)), false)
	}
	if err := json.Unmarshal(raw, &args); err != nil || args.Reference == "" || args.Approved == nil {
		refuse(registry.ErrorValidation, toolerror.ConfirmActionArguments())
		return
	}
	i := slices.IndexFunc(m.confirmations, func(q confirmation) bool { return q.reference == args.Reference })
	switch {
	case i < 0 || m.confirmations[i].resolving:
		refuse(registry.ErrorNotFound, toolerror.NoSuchQuestion())
	case *args.Approved && !m.confirmations[i].askedAt.Before(m.spokenAt):
		refuse(registry.ErrorConfirmationRequired, toolerror.UserHasNotSpoken())
	default:
		q := &m.confirmations[i]
		q.resolving, q.spokenBy = true, c.id
		m.calls = append(m.calls, c)
		m.do(ResolveConfirmation{Token: q.token, Approved: *args.Approved, By: ConfirmedBySpoken})
	}
}

// confirmActionFailed answers a ConfirmAction whose answer could not be recorded.
func (m *machine) confirmActionFailed(id string) {
	c := m.call(id)
	if c == nil {
		return
	}
	said := *c
	m.forgetCall(id)
	m.conclude(said, m.book.Refuse(ConfirmAction, registry.NewError(registry.ErrorTransient, toolerror.AnswerNotRecorded())), false)
}

// answersQuestion says whether a call is a ConfirmAction whose answer is being recorded.
func (s State) answersQuestion(call string) bool {
	return slices.ContainsFunc(s.confirmations, func(q confirmation) bool { return q.spokenBy == call })
}

// watchConfirmations ends questions that were not answered in time.
func (m *machine) watchConfirmations() {
	for i := range m.confirmations {
		if c := &m.confirmations[i]; !c.resolving && !m.at.Before(c.expiresAt) {
			c.resolving = true
			m.do(ResolveConfirmation{Token: c.token, By: ConfirmedByClock})
		}
	}
}

// outcomeRecord is the audit's record of a question that ran nothing.
func (m *machine) outcomeRecord(c confirmation, o Outcome, by ConfirmedBy) audit.Record {
	r := audit.Call{At: m.at, Tools: m.book.Tools(), Tool: c.prepared.Tool().ToolID, Mode: registry.ModeVoice}.Record()
	r.Event, r.TurnID, r.ProviderCallID, r.Delivered = audit.EventConfirmation, c.turn, c.provider, false
	r.Confirmation, r.ConfirmedBy, r.Reference, r.Args = string(o), string(by), c.reference, c.prepared.Args()
	return r
}
