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

// TestConversations runs the conversations shared by voice and text with the calls alone.
func TestConversations(t *testing.T) {
	callstest.Play(t, func(t *testing.T, story func(callstest.Player)) {
		story(&player{calls: calls.New(callstest.Tools(t, nil), &calls.Rules{Tools: callstest.Rules(spec.ModeVoice), Prefix: "c"}), ran: map[string]calls.Run{}})
	})
}

// player carries out actions at once.
type player struct {
	calls calls.Calls
	turn  int
	ran   map[string]calls.Run // running calls, by tool and arguments
	sent  []protocol.ServerMessage
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
	env.Meta.Clamped = run.Prepared.Clamp(nil) // as the executor reports
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

// do carries out actions, and returns the questions to record.
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
			p.sent = append(p.sent, a.Message)
		case calls.Answer:
			p.sent = append(p.sent, a.Message())
		case calls.Approved:
			p.do(p.calls.Approve(time.Time{}, p.turn, a))
		}
	}
	return asked
}

func (p *player) flush() ([]protocol.ServerMessage, []string) {
	sent, begun := p.sent, p.begun
	p.sent, p.begun = nil, nil
	return sent, begun
}

func envelope(ok bool) registry.Envelope {
	if ok {
		return registry.Envelope{OK: true, Data: json.RawMessage(`"` + callstest.Data + `"`)}
	}
	failed := callstest.Failed()
	return registry.Envelope{Error: &registry.Error{Type: failed.Type, Message: failed.Message}}
}
