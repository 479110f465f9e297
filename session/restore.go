package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

// restoring is the state of a session that another process has run.
type restoring struct {
	taken    *Taken
	saved    savedState
	entries  []conversation.Entry // the session's entries in the conversation
	resume   *protocol.Resume     // nil if the client does not return
	outcomes map[string]calls.Outcome

	unheard bool // the client lacks a part of the last answer
}

const (
	// seqLeftOut is added to the seq at a takeover: more than the client may have received since the checkpoint.
	seqLeftOut = 1000
	// linksPerEpoch is how many connections one process may open for a session before their names could repeat.
	linksPerEpoch = 1000
)

func startOf(r store.SessionRecord, back *startMessage) *startMessage {
	start := &startMessage{
		Provider: r.Provider, Agent: r.Agent, Voice: r.Voice, InputRate: r.InputRate, OutputRate: r.OutputRate,
		TurnDetection: protocol.TurnDetectionServer, ConversationID: r.Conversation, Inspect: r.Inspect,
		Client:   &protocol.ClientInfo{ID: r.ClientID},
		TimeZone: cmp.Or(back.TimeZone, r.TimeZone),
	}
	if r.Manual {
		start.TurnDetection = protocol.TurnDetectionClient
	}
	if back.Client != nil {
		start.Client.Name, start.Client.Version = back.Client.Name, back.Client.Version
	}
	return start
}

func (at *restoring) restore(s *session) {
	r, c := at.taken.Record, at.taken.Checkpoint
	s.startedAt, s.elsewhere = r.StartedAt, time.Since(r.StartedAt)
	l := s.model.link()
	l.replaced = true
	l.markOver()
	var newer []conversation.Entry
	s.transcript, newer = handoff.RestoreTranscript(s.partHeader(), c.History, at.saved.Items, at.entries, c.Dropped,
		at.saved.State.Cost.Minus(at.saved.Unplaced))
	at.saved.State = caughtUp(at.saved.State, newer)
	seq := c.Seq
	if at.resume != nil {
		at.hear(s.transcript)
		seq = max(seq, at.resume.LastSeq)
	}
	s.down.GoOnAfter(seq + seqLeftOut)
	if !at.taken.handedOver() && at.saved.Used != nil {
		s.usage.sum = *at.saved.Used // the process that died reported none of it
	}
	s.client.state.transcripts = at.saved.Transcripts
	for _, m := range s.client.state.transcripts {
		if m.Role == string(transport.RoleAssistant) {
			m.Final = true // the next model's words are another item
		}
	}
	if o := at.open(); o != nil {
		s.client.state.turn = &protocol.TurnStarted{Header: inTurn(o.Number)}
	}
	for _, q := range at.saved.State.Calls.Questions {
		m := &protocol.ConfirmationRequest{Header: inTurn(q.Turn), Token: q.Token, Tool: q.Tool, Args: q.Args,
			ExpiresAt: protocol.Time{Time: q.ExpiresAt}}
		if e := q.Answer.Error; e != nil && e.ConfirmationRequest != nil {
			m.Preview = e.ConfirmationRequest.Preview
		}
		s.client.state.questions = append(s.client.state.questions, m)
	}
}

// Conversations are written at the end of each turn, checkpoints at most once a second.
func caughtUp(m orchestrator.Memory, newer []conversation.Entry) orchestrator.Memory {
	for _, e := range newer {
		m.Cost = m.Cost.Plus(cost.Amount{Micros: cost.Micros(e.CostUSDMicros), Unpriced: e.Unpriced})
		m.Turn = max(m.Turn, e.Turn)
		if e.Role != conversation.RoleAssistant || e.Turn < max(m.Turn, 1) || m.Answered != nil && m.Answered.Number == e.Turn {
			continue
		}
		over := &orchestrator.OpenTurn{Number: e.Turn, Worded: true}
		for _, known := range []*orchestrator.OpenTurn{m.Open, m.Stopped} {
			if known != nil && known.Number == e.Turn {
				*over = *known
			}
		}
		over.Spoke, over.Untold = true, true
		m.Open, m.Answered, m.Stopped = nil, over, nil
		if e.Interrupted {
			m.Answered, m.Stopped = nil, over
		}
	}
	return m
}

func (at *restoring) hear(story *handoff.Transcript) {
	has := orchestrator.Received{Seq: at.resume.LastSeq}
	if a := at.resume.Audio; a != nil {
		has.Item, has.MS = a.ItemID, a.ReceivedMS
	}
	var unheard []orchestrator.Unheard
	at.saved.State, unheard = at.saved.State.Heard(has)
	at.unheard = len(unheard) > 0
	for _, u := range unheard {
		text := story.Unheard(u)
		at.saved.Transcripts = slices.DeleteFunc(at.saved.Transcripts, func(m *protocol.Transcript) bool {
			if m.ID == u.Item && m.Role == string(transport.RoleAssistant) {
				m.Text, m.Final = text, true
				return text == ""
			}
			return false
		})
	}
}

// open returns the turn that is open from the client's view; nil between turns.
func (at *restoring) open() *orchestrator.OpenTurn {
	m := at.saved.State
	switch {
	case m.Open != nil:
		return m.Open
	case m.Stopped != nil:
		return m.Stopped // this process reports its end
	case m.Answered != nil && m.Answered.Untold:
		return m.Answered
	}
	return nil
}

// settled returns the position up to which the user's speech needs no repetition: the answer that the client has or,
// if it has none and no words are known, the beginning of the speech. ok is false for checkpoints of older versions.
func (at *restoring) settled() (ms int64, ok bool) {
	if at.saved.SettledMS == nil {
		return 0, false
	}
	ms = *at.saved.SettledMS
	has := at.resume.Input
	if o := at.saved.State.Open; has != nil && o != nil && !o.Spoke && !o.Worded && o.AgainMS != nil &&
		*o.AgainMS+sayAgainFrom >= has.FromMS {
		ms = min(ms, *o.AgainMS)
	}
	return ms, true
}

// sayAgainFrom is how much audio before the user's speech the client may lack, in ms.
const sayAgainFrom = 1000

// settleDraft settles the user's last utterance if its words are incomplete. again: the client repeats the audio from
// settled on, so the model hears it, unless it had begun to answer. Otherwise the known words are final.
func (at *restoring) settleDraft(s *session, settled int64, again bool) {
	draft, m := at.saved.Draft, &at.saved.State
	if draft == nil || draft.Role != conversation.RoleUser {
		return
	}
	if o := m.Open; o != nil && o.Number >= draft.Turn && o.AgainMS != nil && *o.AgainMS < settled || m.Answered != nil &&
		m.Answered.Number >= draft.Turn {
		again = false // the client repeats only later audio
	}
	s.transcript.Settle(*draft, again)
	if again {
		return
	}
	if o := m.Open; o != nil && o.Number == draft.Turn {
		o.Worded = true
	}
	m.Worded = m.Worded || m.Unanswered && draft.Turn > m.Turn
	for _, said := range s.client.state.transcripts {
		if said.Role == string(transport.RoleUser) && said.Turn == draft.Turn {
			said.Final = true
		}
	}
}

func (at *restoring) begin(s *session) {
	now, r := time.Now(), at.taken.Record
	s.inbound.Lock()
	defer s.inbound.Unlock()
	again := false
	settled, ok := at.settled()
	if ok {
		from, more := s.mic.startAt(settled, at.resume.Input)
		s.ear.startAt(from)
		if again = more > 0; again {
			s.log().Info("the client sends audio again that the model may not have heard", "from_ms", from, "audio_ms", more.Milliseconds())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at.settleDraft(s, settled, again)
	token := s.client.tokens.next(at.resume.Token, now)
	s.place.Update(func(is *store.SessionRecord) {
		s.client.tokens.writeTo(is)
		// Until the client has the new token, the earlier ones are valid.
		is.TokenHashes = append(is.TokenHashes, r.TokenHashes...)
		is.State, is.Lost, is.ToolsVersion = store.SessionLive, false, s.toolsVersion()
		is.Mark, is.PrincipalExpires = s.principal.Value().Mark, s.principal.Value().Expires
		is.Agent, is.AgentVersion = s.agent.Load().Name, s.agent.Load().Version
	})
	safe := s.client.tokens.saved(s.place.Written())
	started := s.startedMessage(token, true, true)
	started.InputAgain = again
	first := append([]protocol.ServerMessage{started}, s.client.state.messages()...)
	if has := at.resume.Audio; has != nil {
		// The item may be unfinished, and no more audio follows.
		first = append(first, &protocol.AudioEnd{ItemID: has.ItemID, AudioMS: has.ReceivedMS})
	}
	if err := s.down.Lead(first...); err != nil {
		s.log().Error("encoding a message", "error", err)
		s.end(causeInternal)
	}
	handle := ""
	if at.taken.Checkpoint.HandleFresh {
		handle = at.taken.Checkpoint.Handle
	}
	s.step(orchestrator.Restored{Memory: at.saved.State, StartedAt: r.StartedAt, Epoch: r.Epoch,
		Given: at.taken.handedOver(), Handle: handle, Unheard: at.unheard,
		SettledMS: s.mic.clock.ms(), SaidAgain: again}, now)
	s.step(orchestrator.Lapse{At: s.lapses()}, now)
	for _, q := range at.saved.State.Calls.Questions {
		if outcome, over := at.outcomes[q.Token]; over {
			s.step(orchestrator.OfCall{In: calls.Resolved{Token: q.Token, Outcome: outcome, By: calls.ByAPI}}, now)
		}
	}
	s.shown.state(s)
	s.setClock()
	a := s.client.attachment()
	s.welcome(a.gen, safe)
	a.start()
}

func (w *relink) returnSession(why orchestrator.Loss) bool {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, never := w.from.conn.(noModel); !never || w.returned || s.isOver() || s.model.handover != nil ||
		!s.state.LastAttempt(time.Now(), why) {
		return false
	}
	w.returned = true
	s.model.handover, s.model.relink = &handover{away: true, over: make(chan struct{})}, w
	return true
}

// noModel replaces the connection that another process had.
type noModel struct{ info transport.Info }

var errNoModel = &transport.Error{Op: "send", Kind: transport.KindRetry, Err: errors.New("the connection belonged to another process")}

func (noModel) Send(context.Context, transport.Command) error { return errNoModel }
func (noModel) Notify(func())                                 {}
func (noModel) Recv() (transport.Event, error)                { return nil, errNoModel }
func (noModel) Ready() bool                                   { return false }
func (noModel) Close() error                                  { return nil }
func (n noModel) Info() transport.Info                        { return n.info }
func (noModel) Stats() transport.Stats                        { return transport.Stats{} }

func (g *startup) firstLink() int {
	if g.restoring == nil {
		return 1
	}
	return int(g.restoring.taken.Record.Epoch-1) * linksPerEpoch
}
