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
	switch {
	case !movable(s.place):
		return
	case mustSave(in) || changes(actions):
	case slices.ContainsFunc(actions, isTranscript) && time.Since(c.at) >= wordsEvery:
	default:
		return
	}
	if err := s.saveNow(); err != nil {
		s.log().Error("encoding a checkpoint", "error", err)
	}
}

// wordsEvery is the interval of checkpoints while the model's words arrive. The store writes one a second.
const wordsEvery = 500 * time.Millisecond

func isTranscript(a orchestrator.Action) bool { _, ok := a.(orchestrator.Transcript); return ok }

// saveNow saves the session if another process could continue it. The caller must hold mu.
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
		if s.isOver() {
			return
		}
		if err := s.saveNow(); err != nil {
			s.log().Error("encoding a checkpoint", "error", err)
		}
	}()
}

func mustSave(in orchestrator.Input) bool {
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

// changes reports whether one of the actions must be saved.
func changes(actions []orchestrator.Action) bool {
	for _, a := range actions {
		switch a := a.(type) {
		case orchestrator.SpeechStarted, orchestrator.TurnStarted, orchestrator.TurnEnded, orchestrator.OpenItem,
			orchestrator.EndItem, orchestrator.ToolEnded, orchestrator.IntentDecided, orchestrator.AgentSwitched,
			orchestrator.ContextGiven, orchestrator.SwitchLink, orchestrator.FlushItem:
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
