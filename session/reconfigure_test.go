package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
	"voicegw/transport"
)

// TestReconfigure: a running session keeps its settings; a new one gets the new limits, policy and providers.
func TestReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.Sessions, o.Policy.MaxLength = 1, time.Hour })
		first := st.arrive(someone, startText)
		st.fake.Accept(t)
		synctest.Wait()
		if _, err := st.m.Admit(someone.Next(), Coming{}); err != ErrFull {
			t.Fatalf("a second session: %v", err)
		}
		other := newFakeModel(hearing)
		to := Options{Transports: map[string]transport.Transport{"fake": other}, Limits: Limits{Sessions: 2}}
		to.Policy.MaxLength = time.Minute
		if err := st.m.Reconfigure(Options{Transports: map[string]transport.Transport{"another": other}}); err == nil {
			t.Error("new providers do not replace the old ones")
		}
		if err := st.m.Reconfigure(to); err != nil {
			t.Fatal(err)
		}
		second := st.arrive(someone.Next(), startText)
		other.Accept(t)
		synctest.Wait()
		if n := st.m.Running(); n != 2 || st.m.Census().Most != 2 {
			t.Fatalf("%d sessions run of %d", n, st.m.Census().Most)
		}
		pass(2 * time.Minute)
		synctest.Wait()
		second.ended(t, protocol.CloseLength)
		if n := st.m.Running(); n != 1 {
			t.Errorf("%d sessions run", n)
		}
		first.say(`{"type":"session.end"}`)
		synctest.Wait()
		first.ended(t, protocol.CloseDone)
	})
}

// TestReconfigureAddresses: new limits for one address apply to new sessions.
func TestReconfigureAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.PerAddress = 1 })
		st.arrive(someone, startText)
		st.fake.Accept(t)
		synctest.Wait()
		if _, err := st.m.Admit(someone, Coming{}); err != ErrAddressLimit {
			t.Fatalf("a second session of the address: %v", err)
		}
		may := Options{Transports: st.m.options().Transports, Policy: st.m.options().Policy, Limits: Limits{PerAddress: 2, NewPerSecond: 1}}
		if err := st.m.Reconfigure(may); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		a, err := st.m.Admit(someone, Coming{})
		if err != nil {
			t.Fatalf("a second session of the address, which may have two: %v", err)
		}
		defer a.Release()
		if _, err := st.m.Admit(someone, Coming{}); err != ErrAddressLimit {
			t.Errorf("two in a second: %v", err)
		}
	})
}
