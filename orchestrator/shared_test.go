package orchestrator

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
	"voicegw/transport"
)

// TestConversationsAboutCalls runs the conversations shared by voice and text with the voice step.
func TestConversationsAboutCalls(t *testing.T) {
	callstest.Play(t, func(t *testing.T, story func(callstest.Player)) {
		rules := Policy{Tools: callstest.Rules(spec.ModeVoice)}
		p := &voicePlayer{state: NewState(capsHearing, NewRules(rules), callstest.Tools(t, nil), testMark, epoch), at: epoch, ran: map[string]calls.Run{}}
		p.take(Began{})
		story(p)
	})
}

// voicePlayer does the session's part in a conversation about calls.
type voicePlayer struct {
	state  State
	at     time.Time
	ran    map[string]calls.Run // running calls, by tool and arguments
	asked  []calls.Ask
	sent   []protocol.ServerMessage
	begun  []string
	permit calls.Permit // the latest
	made   int          // number of the model's calls
}

func (p *voicePlayer) Say() ([]protocol.ServerMessage, []string) {
	p.take(UserText{Text: "go on"})
	return p.flush()
}

func (p *voicePlayer) Call(batch []callstest.Call) ([]protocol.ServerMessage, []string) {
	for _, c := range batch {
		p.made++
		p.take(FromModel{transport.ToolCall{Call: fmt.Sprint("m", p.made), ID: c.ID, Name: c.Tool, Args: json.RawMessage(c.Args)}})
	}
	for _, a := range p.asked {
		p.take(OfCall{calls.Recorded{Call: a.Call, Token: "token-" + a.Call, Name: "name-" + a.Call, Reference: "ref-" + a.Call, ExpiresAt: p.at.Add(time.Hour)}})
	}
	p.asked = nil
	return p.flush()
}

func (p *voicePlayer) Finish(begun string, ok bool) ([]protocol.ServerMessage, []string) {
	env := registry.Envelope{OK: true, Data: json.RawMessage(`"` + callstest.Data + `"`)}
	if failed := callstest.Failed(); !ok {
		env = registry.Envelope{Error: &registry.Error{Type: failed.Type, Message: failed.Message}}
	}
	run := p.ran[begun]
	env.Meta.Clamped = run.Prepared.Clamp(nil) // as the executor reports
	p.take(OfCall{calls.Finished{Call: run.Call, Envelope: env}})
	return p.flush()
}

func (p *voicePlayer) Nest(begun, tool, args string) string {
	run := p.ran[begun]
	p.take(OfCall{calls.Nested{Call: run.Call, Caller: run.Prepared.Tool().ToolID, ID: run.Call + ".1", Tool: tool, Args: json.RawMessage(args)}})
	if p.permit.Refused != nil {
		return string(p.permit.Refused.Error.Type)
	}
	return "ok"
}

func (p *voicePlayer) Answer(token string, approved bool) ([]protocol.ServerMessage, []string) {
	p.take(ConfirmationAnswer{Token: token, Approved: approved})
	return p.flush()
}

// take makes one step and carries out its actions.
func (p *voicePlayer) take(in Input) {
	p.at = p.at.Add(time.Second)
	var actions []Action
	p.state, actions = Step(p.state, p.at, in)
	for _, a := range actions {
		switch a := bare(a).(type) {
		case calls.Run:
			name := fmt.Sprintf("%s %s", a.Prepared.Tool().ToolID, a.Prepared.Args())
			p.ran[name] = a
			p.begun = append(p.begun, name)
		case calls.Ask:
			p.asked = append(p.asked, a)
		case calls.Permit:
			p.permit = a
		case calls.ToClient:
			p.sent = append(p.sent, a.Message)
		case ToolEnded:
			p.sent = append(p.sent, a.Message())
		case calls.Resolve:
			outcome := calls.OutcomeDenied
			if a.Approved {
				outcome = calls.OutcomeApproved
			}
			p.take(OfCall{calls.Resolved{Token: a.Token, Outcome: outcome, By: a.By}})
		}
	}
}

func (p *voicePlayer) flush() ([]protocol.ServerMessage, []string) {
	sent, begun := p.sent, p.begun
	p.sent, p.begun = nil, nil
	return sent, begun
}
