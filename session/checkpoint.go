package session

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/logging"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport"
)

// remembered is what a checkpoint holds of a session beside what was said. Its JSON form is read by
// other versions of the program, so its fields are only ever added to.
type savedState struct {
	State orchestrator.Memory `json:"state"`
	// Questions are the tokens of the open questions; see sealed.
	Questions [][]byte `json:"questions,omitempty"`
	// Mark is the code of the mark before the gateway's own words to the model.
	Mark string `json:"mark,omitempty"`
	// Transcripts are the newest ones of the last two turns, as the client knows them.
	Transcripts []*protocol.Transcript `json:"transcripts,omitempty"`
	// SettledMS is up to where the user's speech is settled, on the client's audio clock; nil if an
	// older version of the program has written it.
	SettledMS *int64 `json:"settled_ms,omitempty"`
	// Items are those that have said the newest entries of the history, aligned with its end.
	Items []string `json:"items,omitempty"`
	// Draft is what the user said last, as far as the words are known, if they are not complete; nil
	// otherwise. The history may have it, too.
	Draft *conversation.Entry `json:"draft,omitempty"`
	// Trace names the beginning of the session in the traces, as a traceparent; empty without traces.
	Trace string `json:"trace,omitempty"`
	// Used is what the session has used in the process that has written this, and in those before that have died;
	// nil if an older version of the program has written it.
	Used *cost.Sum `json:"used,omitempty"`
	// Unplaced is what the session has cost that no entry of the conversation has yet.
	Unplaced cost.Amount `json:"unplaced,omitzero"`
}

// checkpoints is when a session is saved. The session's mu guards it.
type checkpoints struct {
	at    time.Time // when the latest was made
	again bool      // another one follows once the audit log has caught up
}

// keepsCheckpoints reports whether another process could go on with the session. The caller must hold
// mu.
func (s *session) canSave() bool {
	return movable(s.place) && s.transcript != nil && s.model.redial.Load() != nil && !s.isOver()
}

// step has a checkpoint written if a step has changed what another process would have to know: the user
// began to speak, a turn began or ended, an answer began or is complete, more of the user's words became
// known, the page told the model something, the words of an item are complete, a question was asked or is over, a call that writes began or ended, or the provider has given a
// handle or what it has used, or an answer was stopped; and now and then while the model's words come. The caller must hold mu.
func (c *checkpoints) afterStep(s *session, in orchestrator.Input, actions []orchestrator.Action) {
	switch {
	case !movable(s.place):
		return
	case tells(in) || changes(actions):
	case slices.ContainsFunc(actions, isTranscript) && time.Since(c.at) >= wordsEvery:
	default:
		return
	}
	if err := s.saveNow(); err != nil {
		s.log().Error("encoding a checkpoint", "error", err)
	}
}

// wordsEvery is how often a checkpoint is made while the model's words come. The store writes one a second.
const wordsEvery = 500 * time.Millisecond

func isTranscript(a orchestrator.Action) bool { _, ok := a.(orchestrator.Transcript); return ok }

// noteNow has a checkpoint written, if another process could go on with the session. The caller must
// hold mu.
func (s *session) saveNow() error {
	if !s.canSave() {
		return nil
	}
	c, err := s.checkpoint("")
	if err == nil {
		s.place.Note(c)
		s.saved.at = time.Now()
		s.saved.onceWritten(s)
	}
	return err
}

// onceWritten makes another checkpoint when the audit log has written the records of this one, so that a later
// takeover does not write them again. The goroutine ends with the session. The caller must hold mu.
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
		if s.isOver() {
			return
		}
		if err := s.saveNow(); err != nil {
			s.log().Error("encoding a checkpoint", "error", err)
		}
	}()
}

// tells reports whether another process would have to know of an input: a handle from which the
// conversation can be resumed, the end of an answer, what it has used, the stop button, or what the page tells the model.
func tells(in orchestrator.Input) bool {
	switch in.(type) {
	case orchestrator.UserContext, orchestrator.UserInterrupt, orchestrator.Used:
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

// changes reports whether another process would have to know of one of the actions.
func changes(actions []orchestrator.Action) bool {
	for _, a := range actions {
		switch a := a.(type) {
		case orchestrator.SpeechStarted, orchestrator.TurnStarted, orchestrator.TurnEnded, orchestrator.OpenItem, orchestrator.EndItem, orchestrator.ToolEnded, orchestrator.IntentDecided, orchestrator.AgentSwitched, orchestrator.ContextGiven, orchestrator.SwitchLink, orchestrator.FlushItem:
			return true
		case orchestrator.Transcript:
			if a.Role == transport.RoleUser || a.Final {
				return true
			}
		case orchestrator.AboutCall:
			switch do := a.Do.(type) {
			case calls.Run:
				return true
			case calls.Tell:
				switch do.Message.(type) {
				case *protocol.ConfirmationRequest, *protocol.ConfirmationEnded:
					return true
				}
			}
		}
	}
	return false
}

// checkpoint returns what another process must know to go on with the session now. handle is the
// provider's from which the conversation can be resumed, if the session's connection was given up
// with it; empty otherwise. The caller must hold mu.
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
	was := savedState{State: memory, Questions: questions, Mark: s.model.redial.Load().mark.Code(), Transcripts: s.client.state.transcripts, SettledMS: &settled, Draft: s.transcript.Draft(), Trace: s.watch.follower.Start.String()}
	used := s.usage.sum
	used.VoiceMS += (now.Sub(s.startedAt) - s.elsewhere).Milliseconds()
	was.Used = &used
	history, items, dropped := s.transcript.History()
	was.Items, was.Unplaced = items, s.transcript.Unplaced(memory.Cost, history)
	state, err := json.Marshal(was)
	if err != nil {
		return store.Checkpoint{}, err //nolint:wrapcheck // the caller names it
	}
	c := store.Checkpoint{At: now.UTC(), Seq: s.down.LastSeq(), Turn: memory.Turn, Earlier: logging.Tokens(s.before), State: logging.Tokens(state), Handle: handle, HandleFresh: handle != ""}
	if handle == "" {
		c.Handle, c.HandleFresh = s.state.Handle()
	}
	c.History, c.Dropped = history, dropped
	return c, nil
}

// What a checkpoint holds of long texts and arguments, in bytes.
const (
	maxKeptNotice = 4 << 10
	maxKeptArgs   = 4 << 10
	maxKeptAsked  = 8 << 10
)

// trim bounds what a checkpoint holds of long texts. A call whose arguments are left out is recognised by
// their sum when it is repeated; a question about a longer call can be answered by the API only.
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
