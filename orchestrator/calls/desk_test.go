package calls

import (
	"encoding/json"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// desk takes calls under names of the test's own, and returns each decision as one value.
type desk struct {
	Calls
	names map[string]string // the gateway's, by the test's
}

// testCall is a call of a test.
type testCall struct {
	ID, ProviderID, Tool string
	Args                 json.RawMessage
	Turn                 int
}

// verdict is the outcome of a decision.
type verdict string

const (
	answeredNow verdict = "answered"
	joins       verdict = "joined"
	again       verdict = "repeated"
	runs        verdict = "run"
	asks        verdict = "ask"
)

// decision is the decision about one call.
type decision struct {
	Verdict    verdict
	Envelope   registry.Envelope
	Into       string
	Wanted     bool // the model waits for an answer of its own
	Prepared   *registry.Prepared
	Keys       Keys
	OverBudget bool
	Budget     json.RawMessage
}

func newDesk(tools *registry.Snapshot, rules Policy) desk {
	return desk{Calls: New(tools, &Rules{Tools: rules, Prefix: "c"}), names: map[string]string{}}
}

// voiceDesk is the desk of a new voice conversation.
func voiceDesk() desk { return newDesk(toolbox(), Policy{Mode: spec.ModeVoice}) }

// clone is a copy that shares no mutable data.
func (d *desk) clone() desk {
	names := map[string]string{}
	for mine, name := range d.names {
		names[mine] = name
	}
	return desk{Calls: d.Clone(), names: names}
}

func (d *desk) Decide(c testCall) decision {
	do := d.Called(time.Time{}, Called{Turn: c.Turn, Provider: c.ProviderID, Tool: c.Tool, Args: c.Args})
	return d.decided(c.ID, do)
}

// Confirmed lets an approved call run in the first turn.
func (d *desk) Confirmed(id, tool, reference string, p *registry.Prepared) decision {
	return d.decided(id, d.Approve(time.Time{}, 1, Approved{
		Tool: tool, Reference: reference, Prepared: p, Args: p.Args(), Keys: ApprovedKeys(reference, p.BusinessKey()),
	}))
}

func (d *desk) decided(mine string, do []Action) (out decision) {
	name := d.rules.Prefix + last(d)
	d.names[mine] = name
	for _, a := range do {
		if a, ok := a.(Answer); ok && a.Call == name {
			out = decision{Verdict: answeredNow, Envelope: a.Envelope, OverBudget: a.OverBudget, Budget: a.record.Budget}
			out.Keys = Keys{Idempotency: a.record.IdempotencyKey, Business: a.record.BusinessKey}
		}
	}
	k := d.find(name)
	if k == nil {
		return out
	}
	out = decision{Prepared: k.prepared, Keys: k.keys, Wanted: k.reader.wants(), Budget: k.budget}
	for mine, name := range d.names {
		if name == k.into {
			out.Into = mine
		}
	}
	switch {
	case k.state == asking:
		out.Verdict = asks
	case k.state == joined && k.echo:
		out.Verdict = again
	case k.state == joined:
		out.Verdict = joins
	default:
		out.Verdict = runs
		k.state = running // no call waits for capacity here
	}
	return out
}

func last(d *desk) string {
	before := d.Calls.Clone()
	before.count--
	return before.NextName()[len(d.rules.Prefix):]
}

// ended gives a call its answer, and returns the answers to the model.
func (d *desk) ended(mine string, env registry.Envelope, took time.Duration) []Answer {
	env.Meta.DurationMS = took.Milliseconds()
	k := d.find(d.names[mine])
	if k != nil && k.state == asking {
		return answers(d.Recorded(time.Time{}, Recorded{Call: k.id, Refused: &env}))
	}
	do, _ := d.Finished(Finished{Call: d.names[mine], Envelope: env})
	return answers(do)
}

// asked records the question about a call.
func (d *desk) asked(mine, token string) []Answer {
	return answers(d.Recorded(time.Time{}, Recorded{Call: d.names[mine], Token: token, Name: token, Reference: "ref"}))
}

// over ends a question without an approval.
func (d *desk) over(name string) {
	if k := d.first(func(k *call) bool { return k.wasAsked() && k.question.Name == name }); k != nil {
		d.remove(k.id)
	}
	d.book.Resolved(name)
}

func answers(do []Action) (out []Answer) {
	for _, a := range do {
		if a, ok := a.(Answer); ok {
			out = append(out, a)
		}
	}
	return out
}
