package session

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
)

// TestLifecycle: the beginning and the end of a session are reported with the same names.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []Lifecycle
		st := newStage(t, hearing, func(o *Options) {
			o.Lifecycle = func(l Lifecycle) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, l)
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
		if len(told) != 2 || told[0].Over != nil || told[1].Over == nil {
			t.Fatalf("%+v", told)
		}
		over := told[1].Over
		told[1].Over = nil
		if told[0] != told[1] || told[0].SessionID == "" || told[0].Provider != "fake" || told[0].Entry != EntryOpen || told[0].Agent == "" {
			t.Errorf("%+v, then %+v", told[0], told[1])
		}
		if lasted := over.At.Sub(told[0].Began); over.Reason != "client_ended" || over.CloseCode != int(protocol.CloseDone) || lasted != 3*time.Second {
			t.Errorf("%+v after %v", over, lasted)
		}
	})
}

// TestAMoveIsNoEnd: of a session that moves, the first process reports the beginning, and the last one the end.
func TestAMoveIsNoEnd(t *testing.T) {
	for cause, over := range map[*Cause]bool{causeMoving: false, causeTaken: false, causeUnreached: false, causeShutdown: true, causeOperator: true, causeGone: true} {
		if cause.continues() == over {
			t.Errorf("%s at %v: reported as ended: %v", cause.Reason, cause.Close, !cause.continues())
		}
	}
	for entry, want := range map[Entry]string{EntryOpen: "[false true]", EntryTakeover: "[true]"} {
		synctest.Test(t, func(t *testing.T) {
			var told []bool
			st := newStage(t, hearing, func(o *Options) { o.Lifecycle = func(l Lifecycle) { told = append(told, l.Over != nil) } })
			c := st.arrive(someone, startText)
			st.fake.Accept(t)
			synctest.Wait()
			told = nil
			s := st.only()
			st.m.reportLifecycle(s, entry, nil)
			st.m.reportLifecycle(s, entry, &Over{})
			if got := fmt.Sprint(told); got != want {
				t.Errorf("%s: %s, want %s", entry, got, want)
			}
			c.say(`{"type":"session.end"}`)
			synctest.Wait()
		})
	}
}
