package session

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/webhook"
	"voicegw/protocol"
)

// TestLifecycle: the beginning and the end of a session are reported with the same names.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var received []webhook.Session
		st := newStage(t, hearing, func(o *Options) {
			o.Lifecycle = func(_ string, _ time.Time, l webhook.Session) {
				mu.Lock()
				defer mu.Unlock()
				received = append(received, l)
			}
		})
		c := st.arrive(someone, startText)
		st.fake.Accept(t)
		synctest.Wait()
		pass(3 * time.Second)
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		c.ended(t, protocol.CloseDone)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(received) != 2 || received[0].End != nil || received[1].End == nil {
			t.Fatalf("%+v", received)
		}
		over := received[1].End
		received[1].End = nil
		if received[0] != received[1] || received[0].SessionID == "" || received[0].Provider != "fake" || received[0].Entry != string(EntryOpen) || received[0].Agent == "" {
			t.Errorf("%+v, then %+v", received[0], received[1])
		}
		if lasted := time.Duration(over.DurationMS) * time.Millisecond; over.Reason != "client_ended" || over.CloseCode != int(protocol.CloseDone) || lasted != 3*time.Second {
			t.Errorf("%+v after %v", over, lasted)
		}
	})
}

// TestMoveIsNoEnd: of a session that moves, the first process reports the beginning, and the last one the end.
func TestMoveIsNoEnd(t *testing.T) {
	for cause, over := range map[*Cause]bool{causeMoving: false, causeTaken: false, causeUnreached: false, causeShutdown: true, causeOperator: true, causeGone: true} {
		if cause.continues() == over {
			t.Errorf("%s at %v: reported as ended: %v", cause.Reason, cause.Close, !cause.continues())
		}
	}
	for entry, want := range map[Entry]string{EntryOpen: "[false true]", EntryTakeover: "[true]"} {
		synctest.Test(t, func(t *testing.T) {
			var received []bool
			st := newStage(t, hearing, func(o *Options) {
				o.Lifecycle = func(_ string, _ time.Time, l webhook.Session) { received = append(received, l.End != nil) }
			})
			c := st.arrive(someone, startText)
			st.fake.Accept(t)
			synctest.Wait()
			received = nil
			s := st.only()
			st.m.reportLifecycle(s, entry, nil)
			st.m.reportLifecycle(s, entry, causeGone)
			if got := fmt.Sprint(received); got != want {
				t.Errorf("%s: %s, want %s", entry, got, want)
			}
			c.say(`{"type":"session.end"}`)
			synctest.Wait()
		})
	}
}
