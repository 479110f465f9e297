package session

import (
	"slices"

	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
)

// clientState is the state that a returning client needs after messages were dropped, as the messages that reported
// it.
type clientState struct {
	turn        *protocol.TurnStarted           // nil between turns
	transcripts []*protocol.Transcript          // the newest of each utterance of the last two turns
	questions   []*protocol.ConfirmationRequest // the open ones
	calls       []*protocol.ToolStarted         // of running calls
}

// maxRecalled bounds the kept utterances of two turns.
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
		all = append(all, r.turn)
	}
	for _, m := range r.transcripts {
		all = append(all, m)
	}
	for _, m := range r.calls {
		all = append(all, m)
	}
	for _, m := range r.questions {
		all = append(all, m)
	}
	for i, m := range all {
		all[i] = protocol.Clone(m)
	}
	return all
}
