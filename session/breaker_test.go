package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// TestBreaker: after three sessions fail to reach a provider, others do not try it for a while; then one tries, and its
// success admits all again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.NewPerSecond = 1000; o.Limits.PerAddress = 1000 })
		st.fake.Refuse(1000, scriptedError("dial", transport.KindRetry))
		for range breakerFailures {
			c := st.connect(startText)
			for !c.isOver() {
				pass(100 * time.Millisecond)
				synctest.Wait()
			}
			c.expect(t, "error provider_unavailable")
		}
		var away *UnreachableError
		if _, err := st.m.Admit(someone, Coming{}); !errors.As(err, &away) || away.RetryIn <= 0 || away.RetryIn > breakerRest {
			t.Fatalf("a new session was admitted: %v", err)
		}
		before := st.fake.Attempts()
		pass(breakerRest)
		st.fake.Relent()
		st.started()
		synctest.Wait()
		if n := st.fake.Attempts() - before; n != 1 {
			t.Errorf("%d attempts after the pause", n)
		}
		if _, ok := st.m.breakers.reachable(); !ok {
			t.Error("the provider was reached, but is marked unavailable")
		}
	})
}

// TestOneTriesAfterThePause: while one session tries the provider again, the others wait.
func TestOneTriesAfterThePause(t *testing.T) {
	var b breaker
	now := time.Now()
	for range breakerFailures {
		if !b.allows(now) {
			t.Fatal("a session was refused too early")
		}
		b.report(false, now)
	}
	if b.allows(now) {
		t.Error("a session was admitted during the pause")
	}
	now = now.Add(breakerRest)
	if !b.allows(now) || b.allows(now) {
		t.Error("not exactly one session was admitted after the pause")
	}
	b.report(true, now)
	if !b.allows(now) {
		t.Error("a session was refused after a success")
	}
}

// TestFailover: a provider that fails in mid-call is replaced by the other one, with the conversation, and with the
// other one's voice and rates.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newFakeModel(remembering)
		other.Provider, other.Info = "other", transport.Info{InputRate: 24000, OutputRate: 24000}
		st := newStage(t, remembering, func(o *Options) {
			o.Transports["other"], o.Fallback = other, "other"
			o.Agent.Voices = map[string]string{"other": "marin"}
		})
		c := st.connect(`{"type":"session.start","protocol":"voicegw.v1","input_rate":16000,"output_rate":24000,"voice":"Kore"}`)
		model := st.fake.Accept(t)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		st.fake.Refuse(1000, scriptedError("dial", transport.KindRetry))
		model.FailRecv(broken())
		synctest.Wait()
		for range 50 {
			c.speak(make([]byte, 640)) // a second, at 16 kHz
		}
		next := other.Accept(t)
		synctest.Wait()
		setup := other.Setups()[0]
		if setup.Voice != "marin" || len(setup.History) != 1 || setup.History[0] != (transport.PastUser{Text: "where is Ada"}) {
			t.Errorf("the other provider got %+v", setup)
		}
		if got := next.NextControl(t); got != (transport.Respond{}) {
			t.Errorf("the other provider got %#v", got)
		}
		if n := len(next.Audio()); n < 47000 || n > 48000 {
			t.Errorf("the other provider heard %d bytes, want a second at 24 kHz", n)
		}
		answers(c, next, "r1", "a1", "In Vienna.")
		c.expect(t, "provider.reconnecting", "provider.reconnected", "audio.start l2.a1", "turn.ended completed")
		if st.m.Sessions()[0].Provider != "other" {
			t.Errorf("the session is listed with %s", st.m.Sessions()[0].Provider)
		}
		c.speak(make([]byte, 640))
		synctest.Wait()
	})
}

// TestFailoverOfAnAccount: if the account has no credit in mid-call, the session switches to the other provider and
// does not retry the first.
func TestFailoverOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newFakeModel(remembering)
		other.Provider = "other"
		st := newStage(t, remembering, func(o *Options) { o.Transports["other"], o.Fallback = other, "other" })
		c, model := st.started()
		synctest.Wait()
		st.fake.Refuse(1000, scriptedError("dial", transport.KindQuota))
		model.FailRecv(scriptedError("recv", transport.KindQuota))
		other.Accept(t)
		synctest.Wait()
		if n := st.fake.Attempts(); n > 2 || c.isOver() {
			t.Errorf("%d attempts, over: %v", n, c.isOver())
		}
	})
}
