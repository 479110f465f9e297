package session

import (
	"encoding/json"
	"time"

	"voicegw/orchestrator"
	"voicegw/session/wsclient"
	"voicegw/transport"
)

// carryOut does what the orchestrator has decided. mu is held: nothing here may
// block.
func (s *session) carryOut(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.Command:
		s.command(a.Command)
	case orchestrator.OpenItem:
		s.queued(s.down.openItem(&wsclient.AudioStart{Header: inTurn(a.Turn), ItemID: a.Item}))
	case orchestrator.EndItem:
		s.queued(s.down.endItem(&wsclient.AudioEnd{Header: inTurn(a.Turn), ItemID: a.Item, AudioMS: a.AudioMS}))
	case orchestrator.FlushItem:
		s.queued(s.down.flushItem(&wsclient.AudioFlush{Header: inTurn(a.Turn), ItemID: a.Item, Reason: string(a.Reason)}))
	case orchestrator.RunTool:
		s.runTool(a)
	case orchestrator.CancelTool:
		s.tools.cancel(a.Call, a.Tool)
	case orchestrator.End:
		s.end(endCause(a.Reason))
	case orchestrator.ToolStarted:
		s.tell(&wsclient.ToolStarted{Header: inTurn(a.Turn), CallID: a.Call, Tool: a.Tool, Category: s.tools.category(a.Tool)})
	case orchestrator.ToolEnded:
		s.tell(toolEnded(a, s.tools.category(a.Tool)))
	default:
		if m := message(a); m != nil {
			s.tell(m)
		}
	}
}

// message returns what an action says to the client.
func message(a orchestrator.Action) wsclient.ServerMessage {
	switch a := a.(type) {
	case orchestrator.TurnStarted:
		return &wsclient.TurnStarted{Header: inTurn(a.Turn)}
	case orchestrator.TurnEnded:
		return &wsclient.TurnEnded{Header: inTurn(a.Turn), Status: string(a.Status), Usage: usage(a.Usage), Latency: latency(a.Latency)}
	case orchestrator.SpeechStarted:
		return &wsclient.SpeechStarted{Header: inTurn(a.Turn), AudioMS: a.AudioMS}
	case orchestrator.SpeechStopped:
		return &wsclient.SpeechStopped{Header: inTurn(a.Turn), AudioMS: a.AudioMS}
	case orchestrator.Transcript:
		return &wsclient.Transcript{Header: inTurn(a.Turn), ID: a.ID, Role: string(a.Role), Text: a.Text,
			Final: a.Final, StartedAt: wsclient.Time{Time: a.StartedAt}}
	case orchestrator.Failed:
		return &wsclient.Error{Header: inTurn(a.Turn), Code: string(a.Failure), Message: failureWords[a.Failure], Retryable: a.Retryable}
	case orchestrator.Ending:
		return &wsclient.SessionEnding{Reason: string(a.Reason), AfterMS: a.After.Milliseconds()}
	}
	return nil
}

// failureWords say to a person what an orchestrator.Failure means.
var failureWords = map[orchestrator.Failure]string{
	orchestrator.FailureNoAnswer: "The voice model gave no answer; say it again, please.",
	orchestrator.FailureProvider: "The voice model reported an error.",
}

func toolEnded(a orchestrator.ToolEnded, category string) wsclient.ServerMessage {
	m := &wsclient.ToolEnded{Header: inTurn(a.Turn), CallID: a.Call, Tool: a.Tool, Category: category,
		OK: a.Envelope.OK, DurationMS: a.Envelope.Meta.DurationMS}
	if a.Envelope.Error != nil {
		// It was written for the model already: this cannot fail.
		m.Error, _ = json.Marshal(a.Envelope.Error)
	}
	if len(a.Envelope.Meta.Clamped) > 0 {
		m.Clamped, _ = json.Marshal(a.Envelope.Meta.Clamped)
	}
	return m
}

func inTurn(n int) wsclient.Header { return wsclient.Header{Turn: n} }

func usage(t transport.Tokens) wsclient.Usage {
	return wsclient.Usage{
		InputTokens: t.Input, OutputTokens: t.Output,
		Input:  wsclient.UsageInput{Text: t.InputText, Audio: t.InputAudio, CachedText: t.CachedText, CachedAudio: t.CachedAudio},
		Output: wsclient.UsageOutput{Text: t.OutputText, Audio: t.OutputAudio},
	}
}

func latency(l *orchestrator.Latency) *wsclient.Latency {
	if l == nil {
		return nil
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return &wsclient.Latency{SpeechEndToFirstAudioMS: ms(l.Total), ProviderMS: ms(l.Provider), GatewayMS: ms(l.Gateway)}
}
