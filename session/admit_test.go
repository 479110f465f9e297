package session

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
)

// arrive admits a client from addr that sends text first, unless text is empty.
func (st *stage) arrive(addr netip.Addr, text string) *testClient {
	st.t.Helper()
	a, err := st.m.Admit(addr, Coming{})
	if err != nil {
		st.t.Fatal(err)
	}
	c := newTestClient()
	if text != "" {
		c.say(text)
	}
	st.m.Start(a, c)
	return c
}

// TestPlaces: the limits on sessions, in total and for one address, apply at the handshake and again at session.start.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.Sessions, o.Limits.PerAddress = 5, 3 })
		other := someone.Next()
		early, late := st.arrive(someone, ""), st.arrive(other, "")
		begin := func(addr netip.Addr) *testClient {
			c := st.arrive(addr, startText)
			st.fake.Accept(t)
			synctest.Wait()
			return c
		}
		first := begin(someone)
		begin(someone)
		begin(someone)
		if _, err := st.m.Admit(someone, Coming{}); err != ErrAddressLimit {
			t.Errorf("a fourth session of one address: %v", err)
		}
		early.say(startText)
		synctest.Wait()
		early.expect(t, "error limit")
		early.ended(t, protocol.CloseLimit)
		begin(other)
		begin(other)
		if _, err := st.m.Admit(other.Next(), Coming{}); err != ErrFull {
			t.Errorf("a sixth session: %v", err)
		}
		late.say(startText)
		synctest.Wait()
		late.expect(t, "error limit")
		late.ended(t, protocol.CloseTryLater)
		if n := st.m.Running(); n != 5 {
			t.Errorf("%d sessions run", n)
		}
		first.say(`{"type":"session.end"}`)
		synctest.Wait()
		begin(someone) // the first session's place is free
	})
}

// TestStartRate: one address may start only so many sessions per second, even one after another.
func TestStartRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.NewPerSecond = 4 })
		begin := func() error {
			a, err := st.m.Admit(someone, Coming{})
			if err == nil {
				a.Release()
				a.Release()
			}
			return err
		}
		for i := range 5 {
			if err := begin(); (err == nil) != (i < 4) {
				t.Errorf("session %d: %v", i, err)
			}
		}
		pass(250 * time.Millisecond)
		if err := begin(); err != nil {
			t.Errorf("a quarter of a second later: %v", err)
		}
		if st.m.Running() != 0 || st.m.waiting.Len() != 0 {
			t.Error("a place is still in use")
		}
		st.m.Close()
		if err := begin(); err != ErrDraining {
			t.Errorf("while draining: %v", err)
		}
	})
}

// TestSilentHandshakes: a thousand silent connections, from one address or many, never exceed the limit on waiting
// clients, and never keep another client from starting a session.
func TestSilentHandshakes(t *testing.T) {
	for name, from := range map[string]func(i int) netip.Addr{
		"from the caller's address": func(int) netip.Addr { return someone },
		"from another address":      func(int) netip.Addr { return someone.Next() },
		"from one IPv6 network": func(i int) netip.Addr {
			return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))
		},
		"from an address each": func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i / 256), byte(i % 256)}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, func(o *Options) {
					o.Limits.Sessions, o.Limits.PerAddress, o.Limits.NewPerSecond = 10, 5, 2000
					o.Limits.Waiting, o.Limits.WaitingPerAddress = 30, 10
				})
				var silent []*testClient
				connect := func(n int) {
					for range n {
						silent = append(silent, st.arrive(from(len(silent)), ""))
						synctest.Wait()
					}
				}
				connect(500)
				honest := st.arrive(someone, "")
				connect(9) // before its session.start
				honest.say(startText)
				st.fake.Accept(t)
				connect(491)
				honest.expect(t, "session.started")
				if honest.isOver() || st.m.Running() != 1 {
					t.Errorf("the honest caller has no session; %d run", st.m.Running())
				}
				left, most := 0, 30
				for i, c := range silent {
					if !c.isOver() {
						left++
						continue
					}
					c.expect(t, "error limit")
					c.ended(t, protocol.CloseTryLater)
					if i > len(silent)-10 {
						t.Errorf("connection %d, one of the newest, was closed", i)
					}
				}
				if name != "from an address each" {
					most = 10
				}
				if left != most {
					t.Errorf("%d wait, want %d", left, most)
				}
			})
		})
	}
}

// TestGreedyAddress: when too many clients wait, the address with the most gives up its oldest; a client alone at its
// address stays.
func TestGreedyAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.Waiting, o.Limits.WaitingPerAddress = 6, 5 })
		alone := st.arrive(someone, "")
		var greedy []*testClient
		for range 4 {
			greedy = append(greedy, st.arrive(someone.Next(), ""))
		}
		for i := range 4 {
			st.arrive(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), "")
		}
		synctest.Wait()
		for i, c := range greedy {
			if c.isOver() != (i < 3) {
				t.Errorf("connection %d of the greedy address is closed: %v", i, c.isOver())
			}
		}
		if alone.isOver() {
			t.Error("the only connection of another address was closed")
		}
	})
}

// TestExemptLoopback: loopback addresses are limited like others unless the operator exempts them; the total limit
// always applies.
func TestExemptLoopback(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "127.1.2.3"} {
		for _, exempt := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, func(o *Options) {
					o.Limits.Sessions, o.Limits.PerAddress, o.Limits.NewPerSecond, o.Limits.ExemptLoopback = 3, 1, 2, exempt
				})
				addr := netip.MustParseAddr(text)
				for range 3 {
					if a, err := st.m.Admit(addr, Coming{}); err == nil {
						if cause := a.takePlace(); cause == nil {
							defer a.Release()
							continue
						}
						a.Release()
					}
				}
				if n, want := st.m.Running(), map[bool]int{false: 1, true: 3}[exempt]; n != want {
					t.Errorf("%s, exempt %v: %d run, want %d", text, exempt, n, want)
				}
				if _, err := st.m.Admit(addr, Coming{}); exempt && err != ErrFull {
					t.Errorf("%s: a fourth session: %v", text, err)
				}
			})
		}
	}
}

// TestDrainIgnoresWaiting: a drain does not wait for clients that have not started a session.
func TestDrainIgnoresWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		silent, late := st.arrive(someone, ""), st.arrive(someone, "")
		c, _ := st.started()
		ctx, cancel := contextWithTimeout(30 * time.Second)
		defer cancel()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			st.m.Drain(ctx)
		}()
		synctest.Wait()
		late.say(startText)
		synctest.Wait()
		late.ended(t, protocol.CloseServerLeaving)
		c.say(`{"type":"session.end"}`)
		<-drained
		silent.ended(t, protocol.CloseServerLeaving)
		if ctx.Err() != nil {
			t.Error("the drain lasted until its limit")
		}
	})
}

// TestAdmitWithSharedStore: a gateway with a store shared by others refuses a new session in the handshake. It accepts
// clients that announce a resume and, while a client is disconnected, any client.
func TestAdmitWithSharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, func(o *Options) { o.Limits.Sessions = 1 }))
		m := r.st.m
		admits := func(when string, how Coming, want error) {
			t.Helper()
			a, err := m.Admit(someone, how)
			if !errors.Is(err, want) {
				t.Errorf("%s, %+v: %v, want %v", when, how, err, want)
			}
			if err == nil {
				a.Release()
			}
		}
		admits("full", Coming{}, ErrFull)
		admits("behind", Coming{Behind: true}, ErrBehind)
		admits("full", Coming{Back: true}, nil)
		admits("behind", Coming{Back: true, Behind: true}, nil)
		r.lose()
		admits("a client is away", Coming{}, nil)
		admits("a client is away", Coming{Behind: true}, nil)
		r.comeBack(r.position())
		admits("it is back", Coming{}, ErrFull)
		wait := r.st.drain(time.Second)
		admits("draining", Coming{}, ErrDraining)
		admits("draining", Coming{Back: true}, nil)
		wait()
	})
}
