package handoff

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/store"
)

// texts formats the texts of a conversation, in order, with the turns.
func texts(t *testing.T, d *Handoffs, id string) string {
	t.Helper()
	c, err := d.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range c.Entries {
		out = append(out, fmt.Sprint(e.Turn, " ", e.Text))
	}
	return strings.Join(out, ", ")
}

// spoken returns a part of one-second utterances.
func spoken(session string, words ...string) Part {
	said := Part{SessionID: session, ConversationID: "c-1", User: user.Must("ada"), Agent: "default"}
	for i, text := range words {
		e := entry(time.Date(2026, 11, 23, 12, 0, i, 0, time.UTC), conversation.SideVoice, i+1, text)
		e.SessionID = session
		said.Entries = append(said.Entries, e)
	}
	return said
}

// TestSavedDuringTheSession: spoken turns are added to the conversation when they end, once, and the handback corrects
// them.
func TestSavedDuringTheSession(t *testing.T) {
	d, _ := newDesk(t)
	invite(t, d, Invitation{User: user.Must("ada"), ConversationID: "c-1", Entries: []conversation.Entry{entry(time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC), conversation.SideText, 1, "hello")}})
	for _, tc := range []struct {
		write func(context.Context, Part) error
		words []string
		want  string
	}{
		{d.Save, []string{"one"}, "1 hello, 2 one"},
		{d.Save, []string{"one", "two two two"}, "1 hello, 2 one, 3 two two two"},
		{d.Save, []string{"one", "two two two"}, "1 hello, 2 one, 3 two two two"},
		{d.HandBack, []string{"one", "two"}, "1 hello, 2 one, 3 two"},
	} {
		if err := tc.write(t.Context(), spoken("voice-1", tc.words...)); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, d, "c-1"); got != tc.want {
			t.Errorf("stored is %s, want %s", got, tc.want)
		}
	}
}

// TestNodeWithLostSessionSavesNothing: neither while another node continues the session, nor after that.
func TestNodeWithLostSessionSavesNothing(t *testing.T) {
	d, s := newDesk(t)
	first, err := s.VoiceSessions.Begin(t.Context(), "voice-1", "ada", "c-1")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	if err := d.Save(t.Context(), spoken("voice-1", "one")); err != nil {
		t.Fatal(err)
	}
	next, err := s.VoiceSessions.Adopt(t.Context(), "voice-1", 2, "ada", "c-1")
	if err != nil {
		t.Fatal(err)
	}
	zombie := spoken("voice-1", "one", "by the zombie")
	if err := d.Save(t.Context(), zombie); !errors.Is(err, store.ErrFenced) {
		t.Errorf("while the other continues: %v", err)
	}
	there := spoken("voice-1", "one", "two", "three")
	there.Epoch = 2
	if err := d.HandBack(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	next.Release()
	if err := d.HandBack(t.Context(), zombie); !errors.Is(err, store.ErrFenced) {
		t.Errorf("after the other has ended: %v", err)
	}
	if got := texts(t, d, "c-1"); got != "1 one, 2 two, 3 three" {
		t.Errorf("stored is %s", got)
	}
}

// slowDesk records the writes; Keep can hang.
type slowDesk struct {
	mu   sync.Mutex // guards the following field
	did  []string
	hang chan struct{} // Keep waits until it is closed, or its context ends
}

func (d *slowDesk) note(what string, said Part) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, fmt.Sprint(what, " ", len(said.Entries)))
}

func (d *slowDesk) Save(ctx context.Context, said Part) error {
	d.note("keep", said)
	select {
	case <-d.hang:
		return nil
	case <-ctx.Done():
		d.note("given up", said)
		return ctx.Err()
	}
}

func (d *slowDesk) HandBack(_ context.Context, said Part) error {
	d.note("back", said)
	return nil
}

// TestSaver: a session never waits for its saves; a waiting save is replaced by a newer one; and the handback follows
// the saves.
func TestSaver(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(d *slowDesk)
		said Part
		want string
	}{
		"the store answers":     {func(d *slowDesk) { close(d.hang); synctest.Wait() }, spoken("voice-1", "a", "b", "c", "d"), "[keep 1 keep 3 back 4]"},
		"the store hangs":       {func(*slowDesk) {}, spoken("voice-1", "a", "b", "c", "d"), "[keep 1 given up 1 back 4]"},
		"nothing was heard yet": {func(d *slowDesk) { close(d.hang); synctest.Wait() }, spoken("voice-1"), "[keep 1 keep 3 back 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &slowDesk{hang: make(chan struct{})}
				k := NewSaver(NewTranscript(Part{SessionID: "voice-1", ConversationID: "c-1"}), d, slog.New(slog.DiscardHandler))
				for i := range 3 {
					k.Save(spoken("voice-1", []string{"a", "b", "c"}[:i+1]...))
					synctest.Wait()
				}
				tc.end(d)
				_, over := k.HandBack(tc.said, Ending{})
				<-over
				k.Save(spoken("voice-1", "too late"))
				synctest.Wait()
				if got := fmt.Sprint(d.did); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
			})
		})
	}
	var none *Saver
	none.Save(spoken("voice-1", "a"))
	if last, over := none.HandBack(Part{}, Ending{}); last != nil || over == nil {
		t.Error("a session without a conversation is handed back")
	}
}
