package session

import (
	"errors"
	"testing"
	"testing/synctest"

	"voicegw/transport"
)

// TestOlderAttachment: after a second client attaches, neither words nor audio of the older one reach the model, and
// its disconnection does not end the session.
func TestOlderAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		older, model := st.started()
		synctest.Wait()
		s := st.only()
		old := s.client.attachment()
		newer := newTestClient()
		s.inbound.Lock()
		s.mu.Lock()
		at := s.attach(newer)
		s.down.Attach(at.gen)
		s.mu.Unlock()
		s.inbound.Unlock()
		at.start()
		older.say(`{"type":"input.text","text":"from the older one"}`)
		older.speak(make([]byte, 640))
		synctest.Wait()
		if got := model.Audio(); len(got) > 0 {
			t.Errorf("the model heard %d bytes of the older client", len(got))
		}
		for _, cmd := range model.Commands() {
			if text, ok := cmd.(transport.UserText); ok {
				t.Errorf("the model got %q", text.Text)
			}
		}
		old.lost(causeSlow)
		older.Abort()
		synctest.Wait()
		if s.isOver() {
			t.Fatalf("the older client's disconnection ended the session: %v", s.cause())
		}
		newer.say(`{"type":"input.text","text":"from the newer one"}`)
		synctest.Wait()
		if s.state.Turns() != 1 {
			t.Errorf("there are %d turns, want 1, the newer client's", s.state.Turns())
		}
		newer.Abort()
		synctest.Wait()
		if !errors.Is(s.cause(), causeGone) {
			t.Errorf("the session ended with %v", s.cause())
		}
	})
}
