package session

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
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
		do, runs := a.Do.(calls.Run)
		if !runs {
			s.aboutCall(a.Do)
			break
		}
		s.byClient.runs(do)
		s.calls.Run(do)
	case orchestrator.Audit:
		s.auditDecision(a)
	case orchestrator.IntentDecided:
		s.shown.intent(s, a)
		transfer(s, a)
	case orchestrator.AgentSwitched:
		s.agentSwitched(a)
	case orchestrator.JobTold:
		s.jobs.markReported(s, a)
	case orchestrator.SwitchLink:
		s.switchLink(a)
	case orchestrator.Redial:
		if s.model.relink != nil {
			s.model.relink.next = &a
		}
	case orchestrator.Moving:
		s.beginHandover(a)
	case orchestrator.PrepareExact, orchestrator.PlayExact, orchestrator.SendExact, orchestrator.HoldUser, orchestrator.MuteUser:
		exactAudio{s}.carryOut(a)
	case orchestrator.DropHeld:
		s.model.link().gate.Interrupt()
	case orchestrator.End:
		s.end(s.endCause(a))
	case orchestrator.TurnEnded:
		s.send(s.usage.turnEnded(a, s.inspect))
	case orchestrator.ToolEnded:
		s.byClient.ended(a.Call)
		s.send(a.Message())
		s.shown.call(s, a)
	case orchestrator.Failed:
		s.sendError(&protocol.Error{Header: inTurn(a.Turn), Code: string(a.Failure), Message: messageFor(a),
			Retryable: a.Retryable, Ref: a.Ref, RetryAfterMS: a.After.Milliseconds()})
	default:
		if m := message(a); m != nil {
			s.send(m)
		}
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

// aboutCall performs a decision about a call that does not run it. The caller must hold mu.
func (s *session) aboutCall(do calls.Action) {
	switch do := do.(type) {
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
}

// message returns the message to the client for an action; nil without one.
func message(a orchestrator.Action) protocol.ServerMessage {
	switch a := a.(type) {
	case orchestrator.TurnStarted:
		return &protocol.TurnStarted{Header: inTurn(a.Turn)}
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
	case orchestrator.AnswerChecked:
		return &protocol.AnswerStopped{Header: inTurn(a.Turn), ItemID: a.Item, Check: a.Rule.Name, Outcome: string(a.Rule.Outcome),
			Reason: string(a.Why)}
	case orchestrator.ClaimUnmatched:
		return a.Message(a.Item)
	case orchestrator.Ending:
		return &protocol.SessionEnding{Reason: string(a.Reason), AfterMS: a.After.Milliseconds()}
	}
	return nil
}

// failureMessages explain an orchestrator.Failure to a person.
var failureMessages = map[orchestrator.Failure]string{
	orchestrator.FailureNoAnswer: "The voice model gave no answer; say it again, please.",
	orchestrator.FailureProvider: "The voice model reported an error.",

	orchestrator.FailureTranscription: "Your words could not be transcribed. The voice model has heard them, and its " +
		"answer is not affected.",

	orchestrator.Failure(calls.RefusedUnknown): "There is no such confirmation in this session; send the token of a confirmation.request.",
	orchestrator.Failure(calls.RefusedUsed):    "This confirmation has been answered already; each can be answered once.",
	orchestrator.Failure(calls.RefusedExpired): "This confirmation has expired; ask for it again.",
	orchestrator.Failure(calls.RefusedStore):   "Your answer could not be recorded and nothing was done; try again in a moment.",
	orchestrator.FailureNotAvailable:           "The voice model of this session does not accept images.",
	orchestrator.FailureUnsent:                 "The voice model is unreachable at the moment and did not receive this; send it again.",
	orchestrator.FailureChecked:                "The answer was stopped by a rule of this service; ask in another way, please.",
	orchestrator.FailureNoSpeech:               "Nothing was said while the button was held; hold it while you speak.",
	orchestrator.FailureEnding:                 "The session is ending and accepts nothing more; start a new one.",
}

// contextMessages replace those of failureMessages for context of the page.
var contextMessages = map[orchestrator.Failure]string{
	orchestrator.FailureNotAvailable: "The voice model of this session does not accept context while it runs.",
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

// auditTrail is the session's unfinished audit records. The session's mu guards it.
type auditTrail struct {
	unwritten audit.Unwritten // records that the audit log may not have written; used concurrently
	telling   *audit.Record   // the record that the next command makes true; nil without one
}

// auditDecision writes a record now or when its answer is sent, and settles its action. The caller must hold mu.
func (s *session) auditDecision(a orchestrator.Audit) {
	if a.Record.Event == audit.EventTool && a.Record.Reference != "" {
		s.calls.Settle(a.Record.Reference)
	}
	s.addRecord(&a.Record)
	if a.Told {
		s.records.telling = &a.Record
		return
	}
	s.audit(a.Record)
}

// addRecord keeps a record until the audit log has written it. The caller must hold mu.
func (s *session) addRecord(r *audit.Record) {
	if s.opts.Audit != nil && s.records.unwritten.Add(r) > orchestrator.MaxUnsent {
		s.log().Warn("the audit log is slow: the session's oldest unwritten record is lost if this gateway dies now",
			"records", orchestrator.MaxUnsent)
	}
}

// auditWait is how long an ended session waits for the audit log: if this process dies, the next one writes them.
const auditWait = 5 * time.Second

func (s *session) waitForAudit(limit time.Duration) {
	if left := s.records.unwritten.Wait(limit); left > 0 {
		s.log().Warn("the session leaves this gateway before the audit log has written its last records", "records", left)
	}
}

// audit writes a record. It may be called concurrently.
func (s *session) audit(r audit.Record) {
	if s.opts.Audit != nil {
		s.opts.Audit(s.identified(r))
	}
}

func undelivered(r *audit.Record) audit.Record {
	u := *r
	u.Delivered, u.NotDelivered = false, "not_sent"
	return u
}

func (g *startup) mayInspect(a *Admission, ticket bool) bool {
	return g.start.Inspect && (a.Principal.May(auth.ScopeInspect) || ticket)
}

// inspector shows the session's inner state to a client that inspects it. The session's mu guards it.
type inspector struct {
	shown *orchestrator.View // the last view sent; nil before the first
}

// state sends the session's state to an inspecting client if it has changed. The caller must hold mu.
func (i *inspector) state(s *session) {
	if !s.inspect {
		return
	}
	v := s.state.View()
	if i.shown != nil && v == *i.shown {
		return
	}
	i.shown = &v
	s.send(&protocol.InspectState{
		Header: inTurn(v.Turn), Phase: string(v.Phase), Speaking: v.Speaking, Responding: v.Responding,
		Awaiting: v.Awaiting, Questions: v.Questions, Muted: v.Muted,
		Suppressed: protocol.InspectSuppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff},
		Budget:     v.Budget(), Notices: v.Notices, Cost: protocol.Cost{USDMicros: int64(v.Spent.Micros), Unpriced: v.Spent.Unpriced},
	})
}

func (i *inspector) call(s *session, a orchestrator.ToolEnded) {
	if !s.inspect {
		return
	}
	m, err := a.Inside(s.identified(a.Record))
	if err != nil {
		s.log().Error("a record cannot be shown", "call_id", a.Call, "error", err)
		return
	}
	s.send(m)
}

func (i *inspector) intent(s *session, a orchestrator.IntentDecided) {
	if a.Why != "" {
		s.log().Warn("a tool's intent was refused", "intent", string(a.Intent.Type), "phase", string(a.Phase), "why", a.Why)
	}
	if !s.inspect {
		return
	}
	intent, err := json.Marshal(a.Intent)
	if err != nil {
		s.log().Error("an intent cannot be shown", "intent", string(a.Intent.Type), "error", err)
		return
	}
	s.send(&protocol.InspectIntent{Header: inTurn(a.Turn), Intent: intent, Applied: a.Why == "", Why: a.Why})
}

// transfer asks the client to transfer the call. The caller must hold mu.
func transfer(s *session, a orchestrator.IntentDecided) {
	if a.Intent.Type == registry.IntentTransferCall && a.Why == "" {
		s.send(&protocol.CallTransfer{Header: inTurn(a.Turn), To: a.Intent.To})
	}
}

func (s *session) identified(r audit.Record) audit.Record {
	r.SessionID, r.UserID = s.id, s.user.String()
	r.ConversationID = s.start.ConversationID
	if r.Agent == "" {
		r.Agent, r.AgentVersion = s.agent.Load().Name, s.agent.Load().Version
	}
	return r
}

// clientState is the state that a returning client needs after messages were dropped, as the messages that reported it.
type clientState struct {
	turn        *protocol.TurnStarted           // nil between turns
	transcripts []*protocol.Transcript          // the newest of each utterance of the last two turns
	questions   []*protocol.ConfirmationRequest // the open ones
	calls       []*protocol.ToolStarted         // of running calls
}

const maxRecalled = 16

func (r *clientState) update(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.TurnStarted:
		r.turn = &protocol.TurnStarted{Header: inTurn(a.Turn)}
		r.transcripts = slices.DeleteFunc(r.transcripts, func(m *protocol.Transcript) bool { return m.Turn < a.Turn-1 })
	case orchestrator.TurnEnded:
		r.turn = nil
	case orchestrator.Transcript:
		r.transcript(message(a).(*protocol.Transcript))
	case orchestrator.ToolEnded:
		r.calls = slices.DeleteFunc(r.calls, func(m *protocol.ToolStarted) bool { return m.CallID == a.Call })
	case orchestrator.AboutCall:
		if told, ok := a.Do.(calls.ToClient); ok {
			r.message(told.Message)
		}
	}
}

func (r *clientState) transcript(m *protocol.Transcript) {
	same := func(other *protocol.Transcript) bool { return other.ID == m.ID && other.Role == m.Role }
	if i := slices.IndexFunc(r.transcripts, same); i >= 0 {
		r.transcripts[i] = m
		return
	}
	if len(r.transcripts) == maxRecalled {
		r.transcripts = slices.Delete(r.transcripts, 0, 1)
	}
	r.transcripts = append(r.transcripts, m)
}

func (r *clientState) message(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.ToolStarted:
		r.calls = append(r.calls, m)
	case *protocol.ConfirmationRequest:
		r.questions = append(r.questions, m)
	case *protocol.ConfirmationEnded:
		r.questions = slices.DeleteFunc(r.questions, func(q *protocol.ConfirmationRequest) bool { return q.Token == m.Token })
	}
}

func (r *clientState) messages() []protocol.ServerMessage {
	var all []protocol.ServerMessage
	if r.turn != nil {
		all = append(all, protocol.Clone(r.turn))
	}
	return appendClones(appendClones(appendClones(all, r.transcripts), r.calls), r.questions)
}

func appendClones[M protocol.ServerMessage](all []protocol.ServerMessage, list []M) []protocol.ServerMessage {
	for _, m := range list {
		all = append(all, protocol.Clone(m))
	}
	return all
}
