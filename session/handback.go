package session

import (
	"context"
	"time"

	"voicegw/audio"
	"voicegw/conversation"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// HandBack is what was said in a session that has gone on with a conversation.
type HandBack struct {
	SessionID, ConversationID, Agent string
	User                             user.User
	// Entries are in one line of time; their turns count from 1 in this session.
	Entries []conversation.Entry
}

// The times of a handback.
const (
	// handbackTime bounds it, and handbackAway that of a session that has ended because the
	// store is away: it waits for the store.
	handbackTime = 15 * time.Second
	handbackAway = 2 * time.Minute
	// handbackWait is how long the client's last message waits for it, so that who
	// reads that message finds the conversation complete.
	handbackWait = time.Second
)

// narrate notes what a step decides in the session's line of time. mu is held, and s.state
// is that of before the step.
func (s *session) narrate(in orchestrator.Input, actions []orchestrator.Action, at time.Time) {
	if s.story == nil {
		return
	}
	if p, ok := in.(orchestrator.Played); ok {
		s.story.played(p)
	}
	for _, a := range actions {
		s.story.note(a, at, s.queuedMS)
	}
}

// queuedMS is how much audio of an item has come, if it is not complete.
func (s *session) queuedMS(item string) int64 {
	return audio.MS(s.start.OutputRate, int(s.down.itemBytes(item)))
}

// told is the session's line of time as of now, before the session's last step.
func (s *session) told() []conversation.Entry {
	if s.story == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return s.story.entries(func(item string) (heard, queued int64, ok bool) {
		heard, ok = s.state.Heard(item, now)
		return heard, s.queuedMS(item), ok
	})
}

// handBack gives the conversation back, on a goroutine of its own: done is closed when
// that is over, after most at the latest. lasted is how long the session was. The message is nil where there is no conversation.
func (s *session) handBack(entries []conversation.Entry, lasted, most time.Duration) (m *protocol.Handback, done <-chan struct{}) {
	over := make(chan struct{}) // closed below
	if s.story == nil {
		close(over)
		return nil, over
	}
	m = &protocol.Handback{ConversationID: s.start.ConversationID, Summary: conversation.Summary(entries, lasted)}
	if len(entries) == 0 {
		close(over)
		return m, over
	}
	go func() {
		defer close(over)
		// The session's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		err := s.opts.HandBack(ctx, HandBack{
			SessionID: s.id, ConversationID: s.start.ConversationID, User: s.user, Agent: s.opts.Agent.Name, Entries: entries,
		})
		if err != nil {
			s.logger.Error("the conversation could not be handed back", "conversation_id", s.start.ConversationID, "error", err)
		}
	}()
	return m, over
}
