package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/logging"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

// savedState is a checkpoint's state besides the history. Other versions read its JSON form: fields may only be added.
type savedState struct {
	State orchestrator.Memory `json:"state"`
	// Questions are the tokens of the open questions; see sealed.
	Questions [][]byte `json:"questions,omitempty"`
	// Mark is the code of the mark before the gateway's own words to the model.
	Mark string `json:"mark,omitempty"`
	// Transcripts are the newest ones of the last two turns, as the client has them.
	Transcripts []*protocol.Transcript `json:"transcripts,omitempty"`
	// SettledMS is the audio position before which the speech needs no repetition; nil in checkpoints of older versions.
	SettledMS *int64 `json:"settled_ms,omitempty"`
	// Items are the ids of the items that spoke the newest entries of the history, aligned with its end.
	Items []string `json:"items,omitempty"`
	// Draft is the user's last utterance if its words are incomplete; nil otherwise. The history may contain it too.
	Draft *conversation.Entry `json:"draft,omitempty"`
	// Trace is the traceparent of the session's beginning; empty without traces.
	Trace string `json:"trace,omitempty"`
	// Used is the usage in this process and in earlier ones that died; nil in checkpoints of older versions.
	Used *cost.Sum `json:"used,omitempty"`
	// Unplaced is the session's cost that no entry of the conversation contains yet.
	Unplaced cost.Amount `json:"unplaced,omitzero"`
}

// checkpoints records when a session is saved. The session's mu guards it.
type checkpoints struct {
	at    time.Time // when the latest was made
	again bool      // another one follows when the audit log has caught up
}

// canSave reports whether another process could continue the session. The caller must hold mu.
func (s *session) canSave() bool {
	return movable(s.place) && s.transcript != nil && s.model.redial.Load() != nil && !s.isOver()
}

// afterStep saves what another process needs; the model's words at most every wordsEvery. The caller must hold mu.
func (c *checkpoints) afterStep(s *session, in orchestrator.Input, actions []orchestrator.Action) {
	words := func() bool { return slices.ContainsFunc(actions, isTranscript) && time.Since(c.at) >= wordsEvery }
	if movable(s.place) && (mustSave(in) || changes(actions) || words()) {
		_ = s.saveNow() // it is logged
	}
}

// wordsEvery is the interval of checkpoints while the model's words arrive. The store writes one a second.
const wordsEvery = 500 * time.Millisecond

func isTranscript(a orchestrator.Action) bool { _, ok := a.(orchestrator.Transcript); return ok }

// saveNow saves the session if another process could continue it, and logs a failure. The caller must hold mu.
func (s *session) saveNow() error {
	if !s.canSave() {
		return nil
	}
	c, err := s.checkpoint("")
	if err != nil {
		s.log().Error("encoding a checkpoint", "error", err)
		return err
	}
	s.place.Note(c)
	s.saved.at = time.Now()
	s.saved.onceWritten(s)
	return nil
}

// onceWritten saves again when the audit log has the records: a takeover writes none twice. The caller must hold mu.
func (c *checkpoints) onceWritten(s *session) {
	owed := s.records.unwritten.Records()
	if len(owed) == 0 || c.again {
		return
	}
	c.again = true
	go func() {
		for _, r := range owed {
			select {
			case <-r.Written:
			case <-s.done:
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.again = false
		_ = s.saveNow() // it is logged
	}()
}

func mustSave(in orchestrator.Input) bool {
	switch in.(type) {
	case orchestrator.UserContext, orchestrator.UserInterrupt, orchestrator.Used, orchestrator.UserText, orchestrator.UserAsk:
		return true
	}
	m, ok := in.(orchestrator.FromModel)
	if !ok {
		return false
	}
	switch ev := m.Event.(type) {
	case transport.ResumeHandle:
		return ev.Resumable
	case transport.ResponseDone:
		return true
	}
	return false
}

func changes(actions []orchestrator.Action) bool {
	for _, a := range actions {
		switch a := a.(type) {
		case orchestrator.SpeechStarted, orchestrator.TurnStarted, orchestrator.TurnEnded, orchestrator.OpenItem,
			orchestrator.EndItem, orchestrator.ToolEnded, orchestrator.IntentDecided, orchestrator.AgentSwitched,
			orchestrator.ContextGiven, orchestrator.SwitchLink, orchestrator.FlushItem, orchestrator.PrepareExact, orchestrator.HoldUser:
			return true
		case orchestrator.Transcript:
			if a.Role == transport.RoleUser || a.Final {
				return true
			}
		case orchestrator.AboutCall:
			switch do := a.Do.(type) {
			case calls.Run:
				return true
			case calls.ToClient:
				switch do.Message.(type) {
				case *protocol.ConfirmationRequest, *protocol.ConfirmationEnded:
					return true
				}
			}
		}
	}
	return false
}

// handle is the provider's resume handle if the connection was closed for it; empty otherwise. The caller must hold mu.
func (s *session) checkpoint(handle string) (store.Checkpoint, error) {
	now := time.Now()
	memory := s.state.Memory()
	memory.Unsent = s.records.unwritten.Records()
	memory.Unsent = memory.Unsent[max(len(memory.Unsent)-orchestrator.MaxUnsent, 0):]
	trim(&memory)
	questions, err := sealed(memory.Calls.Questions, s.id, s.client.tokens.keys())
	if err != nil {
		return store.Checkpoint{}, err
	}
	for i := range memory.Spoken {
		is := &memory.Spoken[i]
		is.Seq = max(is.Seq, s.down.AnnouncedWith(is.Item))
		if !is.Ended && !is.Cut {
			is.MS = s.queuedMS(is.Item)
		}
	}
	settled := s.state.Settled(s.mic.clock.ms())
	was := savedState{State: memory, Questions: questions, Mark: s.model.redial.Load().mark.Code(),
		Transcripts: s.client.state.transcripts, SettledMS: &settled, Draft: s.transcript.Draft(), Trace: s.watch.follower.Start.String()}
	used := s.usage.sum
	used.VoiceMS += (now.Sub(s.startedAt) - s.elsewhere).Milliseconds()
	was.Used = &used
	history, items, dropped := s.transcript.History()
	was.Items, was.Unplaced = items, s.transcript.Unplaced(memory.Cost, history)
	state, err := json.Marshal(was)
	if err != nil {
		return store.Checkpoint{}, err //nolint:wrapcheck // the caller names it
	}
	c := store.Checkpoint{At: now.UTC(), Seq: s.down.LastSeq(), Turn: memory.Turn, Earlier: logging.Tokens(s.before),
		State: logging.Tokens(state), Handle: handle, HandleFresh: handle != ""}
	if handle == "" {
		c.Handle, c.HandleFresh = s.state.Handle()
	}
	c.History, c.Dropped = history, dropped
	return c, nil
}

// The limits of long texts and arguments in a checkpoint, in bytes.
const (
	maxKeptNotice = 4 << 10
	maxKeptArgs   = 4 << 10
	maxKeptAsked  = 8 << 10
)

// Calls without arguments are recognised by their hash; questions about longer calls are answered through the API only.
func trim(m *orchestrator.Memory) {
	for i := range m.Notices {
		if len(m.Notices[i].Text) > maxKeptNotice {
			m.Notices[i].Text = textutil.Shorten(m.Notices[i].Text, maxKeptNotice)
		}
	}
	for i, r := range m.Unsent {
		if len(r.Args) > maxKeptArgs {
			short := *r
			short.Args, m.Unsent[i] = nil, &short
		}
	}
	for _, all := range [][]calls.OpenCall{m.Calls.Open, m.Calls.Lost} {
		for i := range all {
			if len(all[i].Args) > maxKeptArgs {
				all[i].LeaveOutArgs()
			}
		}
	}
	kept := m.Calls.Questions[:0]
	for _, q := range m.Calls.Questions {
		if len(q.Args) <= maxKeptAsked {
			kept = append(kept, q)
		}
	}
	m.Calls.Questions = kept
}

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
		Extra:    back.Extra,
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
	token := s.client.tokens.next(at.resume.Token)
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
	s.checkQueue(true, s.down.Lead(first...))
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
