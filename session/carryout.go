package session

import (
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/transport"
)

// carryOut performs the orchestrator's actions. It must not block. The caller must hold mu.
func (s *session) carryOut(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.Command:
		told := s.records.telling
		s.records.telling = nil
		s.command(a.Command, told)
	case orchestrator.OpenItem, orchestrator.EndItem, orchestrator.FlushItem:
		s.sound(a)
	case orchestrator.AboutCall:
		switch do := a.Do.(type) {
		case calls.Run:
			s.calls.Run(do)
		case calls.Cancel:
			s.calls.Cancel(do.Call)
		case calls.Ask:
			s.calls.Ask(do)
		case calls.Permit:
			s.calls.Permit(do)
		case calls.Resolve:
			s.calls.Resolve(do)
		case calls.ToClient:
			s.send(do.Message)
		case calls.Slow:
			s.log().Warn("the tools of a turn are slow", "turn", do.Turn, "tool_time_ms", do.Taken.Milliseconds(),
				"limit_ms", do.Limit.Milliseconds())
		}
	case orchestrator.Audit:
		s.auditDecision(a)
	case orchestrator.IntentDecided, orchestrator.AgentSwitched, orchestrator.JobTold:
		s.decision(a)
	case orchestrator.SwitchLink, orchestrator.Redial, orchestrator.Moving:
		s.unlink(a)
	case orchestrator.MuteUser:
		s.mic.muted.Store(true)
	case orchestrator.End:
		s.end(s.endCause(a))
	case orchestrator.ToolEnded:
		s.send(a.Message())
		s.shown.call(s, a)
	case orchestrator.Failed:
		s.sendError(&protocol.Error{Header: inTurn(a.Turn), Code: string(a.Failure), Message: messageFor(a),
			Retryable: a.Retryable, Ref: a.Ref, RetryAfterMS: a.After.Milliseconds()})
	default:
		if m := message(a); m != nil {
			s.usage.turnEnded(a, m, s.inspect)
			s.send(m)
		}
	}
}

// decision records decisions about intents, agents and jobs. The caller must hold mu.
func (s *session) decision(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.IntentDecided:
		s.shown.intent(s, a)
	case orchestrator.AgentSwitched:
		s.agentSwitched(a)
	case orchestrator.JobTold:
		s.jobs.markReported(s, a)
	}
}

// sound queues the beginning, the end or the flush of an item's audio. The caller must hold mu.
func (s *session) sound(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.OpenItem:
		s.checkQueue(true, s.down.OpenItem(&protocol.AudioStart{Header: inTurn(a.Turn), ItemID: a.Item}))
	case orchestrator.EndItem:
		s.checkQueue(s.down.EndItem(&protocol.AudioEnd{Header: inTurn(a.Turn), ItemID: a.Item, AudioMS: a.AudioMS}))
	case orchestrator.FlushItem:
		s.checkQueue(s.down.FlushItem(&protocol.AudioFlush{Header: inTurn(a.Turn), ItemID: a.Item, Reason: string(a.Reason)}))
	}
}

// message returns the message to the client for an action; nil without one.
func message(a orchestrator.Action) protocol.ServerMessage {
	switch a := a.(type) {
	case orchestrator.TurnStarted:
		return &protocol.TurnStarted{Header: inTurn(a.Turn)}
	case orchestrator.TurnEnded:
		return &protocol.TurnEnded{Header: inTurn(a.Turn), Status: string(a.Status),
			Usage: usageOf(a.Usage, a.Cost.Estimated > 0), Latency: latency(a.Latency)}
	case orchestrator.SpeechStarted:
		return &protocol.SpeechStarted{Header: inTurn(a.Turn), AudioMS: a.AudioMS}
	case orchestrator.SpeechStopped:
		stopped := &protocol.SpeechStopped{Header: inTurn(a.Turn), AudioMS: a.AudioMS}
		if a.EndMS >= 0 {
			stopped.EndMS = &a.EndMS
		}
		return stopped
	case orchestrator.Transcript:
		return &protocol.Transcript{Header: inTurn(a.Turn), ID: a.ID, Role: string(a.Role), Text: a.Text,
			Final: a.Final, StartedAt: protocol.Time{Time: a.StartedAt}}
	case orchestrator.Reconnecting:
		return &protocol.ProviderReconnecting{Reason: string(a.Reason)}
	case orchestrator.Reconnected:
		return &protocol.ProviderReconnected{Reason: string(a.Reason), LostMS: a.Lost.Milliseconds(), How: string(a.How)}
	case orchestrator.Ending:
		return &protocol.SessionEnding{Reason: string(a.Reason), AfterMS: a.After.Milliseconds()}
	}
	return nil
}

// failureMessages explain an orchestrator.Failure to a person.
var failureMessages = map[orchestrator.Failure]string{
	orchestrator.FailureNoAnswer: "The voice model gave no answer; say it again, please.",
	orchestrator.FailureProvider: "The voice model reported an error.",

	orchestrator.FailureTranscription: "What you said could not be written down. The voice model has heard it, and its answer " +
		"is not affected.",

	orchestrator.Failure(calls.RefusedUnknown): "There is no such confirmation in this session; send the token of a confirmation.request.",
	orchestrator.Failure(calls.RefusedUsed):    "This confirmation has been answered already; each can be answered once.",
	orchestrator.Failure(calls.RefusedExpired): "This confirmation has expired; ask for it again.",
	orchestrator.Failure(calls.RefusedStore):   "Your answer could not be recorded and nothing was done; try again in a moment.",
	orchestrator.FailureNotAvailable:           "The voice model of this session takes no images.",
	orchestrator.FailureUnsent:                 "The voice model cannot be reached just now and has not got it; send it again.",
	orchestrator.FailureNoSpeech:               "Nothing was said while the button was held; hold it while you speak.",
	orchestrator.FailureEnding:                 "The session is ending and takes nothing more; start a new one.",
}

// contextMessages replace those of failureMessages for context of the page.
var contextMessages = map[orchestrator.Failure]string{
	orchestrator.FailureNotAvailable: "The voice model of this session takes no context while it runs.",
	orchestrator.FailureUnsent:       "The queue of context for the voice model is full; send it again later.",
}

func messageFor(a orchestrator.Failed) string {
	if words := contextMessages[a.Failure]; words != "" && a.Ref == orchestrator.OfContext {
		return words
	}
	if a.Kind != 0 {
		return a.Kind.Failure().Words
	}
	return failureMessages[a.Failure]
}

func inTurn(n int) protocol.Header { return protocol.Header{Turn: n} }

func usageOf(t transport.Tokens, estimated bool) protocol.Usage {
	return protocol.Usage{
		InputTokens: t.Input, OutputTokens: t.Output, Estimated: estimated,
		Input:  protocol.UsageInput{Text: t.InputText, Audio: t.InputAudio, CachedText: t.CachedText, CachedAudio: t.CachedAudio},
		Output: protocol.UsageOutput{Text: t.OutputText, Audio: t.OutputAudio},
	}
}

// latency rounds the boundaries between the parts, so that the parts in ms add up to the total.
func latency(l *orchestrator.Latency) *protocol.Latency {
	if l == nil {
		return nil
	}
	known, answered, all := l.Detection.Milliseconds(), (l.Detection + l.Provider).Milliseconds(), l.Total.Milliseconds()
	return &protocol.Latency{SpeechEndToFirstAudioMS: all, DetectionMS: known, ProviderMS: answered - known, GatewayMS: all - answered}
}
