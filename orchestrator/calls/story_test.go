package calls_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/calls/callstest"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestConversations plays the conversations that voice and text have in common with the
// calls alone.
func TestConversations(t *testing.T) {
	callstest.Play(t, func(t *testing.T, story func(callstest.Player)) {
		story(&player{calls: calls.New(callstest.Tools(t, nil), &calls.Rules{Tools: callstest.Rules(spec.ModeVoice), Prefix: "c"}), ran: map[string]calls.Run{}})
	})
}

// player does what the calls ask for, at once.
type player struct {
	calls calls.Calls
	turn  int
	ran   map[string]calls.Run // what runs, by tool and arguments
	told  []protocol.ServerMessage
	begun []string
}

func (p *player) Say() ([]protocol.ServerMessage, []string) {
	p.turn++
	p.calls.Book().BeginTurn()
	return p.flush()
}

func (p *player) Call(batch []callstest.Call) ([]protocol.ServerMessage, []string) {
	var asked []calls.Ask
	for _, c := range batch {
		asked = append(asked, p.do(p.calls.Called(time.Time{}, calls.Called{Turn: p.turn, Provider: c.ID, Tool: c.Tool, Args: json.RawMessage(c.Args)}))...)
	}
	for _, a := range asked {
		p.do(p.calls.Recorded(time.Time{}, calls.Recorded{Call: a.Call, Token: "token-" + a.Call, Name: "name-" + a.Call, Reference: "ref-" + a.Call}))
	}
	return p.flush()
}

func (p *player) Finish(begun string, ok bool) ([]protocol.ServerMessage, []string) {
	run, env := p.ran[begun], envelope(ok)
	env.Meta.Clamped = run.Prepared.Clamp(nil) // as what runs a tool says
	do, _ := p.calls.Finished(calls.Finished{Call: run.Call, Envelope: env})
	p.do(do)
	return p.flush()
}

func (p *player) Nest(begun, tool, args string) string {
	run := p.ran[begun]
	do := p.calls.Nested(calls.Nested{Call: run.Call, Caller: run.Prepared.Tool().ToolID, ID: run.Call + ".1", Tool: tool, Args: json.RawMessage(args)})
	if permit := do[0].(calls.Permit); permit.Refused != nil { //nolint:forcetypeassert // a test
		return string(permit.Refused.Error.Type)
	}
	return "ok"
}

func (p *player) Answer(token string, approved bool) ([]protocol.ServerMessage, []string) {
	p.do(p.calls.Answered(token, approved))
	outcome := calls.OutcomeDenied
	if approved {
		outcome = calls.OutcomeApproved
	}
	p.turn++
	p.do(p.calls.Resolved(time.Time{}, calls.Resolved{Token: token, Outcome: outcome, By: calls.ByClient}))
	return p.flush()
}

// do does what is to be done, and returns what has to be recorded.
func (p *player) do(all []calls.Action) (asked []calls.Ask) {
	for _, a := range all {
		switch a := a.(type) {
		case calls.Run:
			name := fmt.Sprintf("%s %s", a.Prepared.Tool().ToolID, a.Prepared.Args())
			p.ran[name] = a
			p.begun = append(p.begun, name)
		case calls.Ask:
			asked = append(asked, a)
		case calls.ToClient:
			p.told = append(p.told, a.Message)
		case calls.Answer:
			p.told = append(p.told, a.Message())
		case calls.Approved:
			p.do(p.calls.Approve(time.Time{}, p.turn, a))
		}
	}
	return asked
}

func (p *player) flush() ([]protocol.ServerMessage, []string) {
	told, begun := p.told, p.begun
	p.told, p.begun = nil, nil
	return told, begun
}

func envelope(ok bool) registry.Envelope {
	if ok {
		return registry.Envelope{OK: true, Data: json.RawMessage(`"` + callstest.Data + `"`)}
	}
	failed := callstest.Failed()
	return registry.Envelope{Error: &registry.Error{Type: failed.Type, Message: failed.Message}}
}
