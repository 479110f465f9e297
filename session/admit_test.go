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

// arrive lets a client from addr in, who says text first; nothing where it is empty.
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

// TestPlaces: sessions are limited in all and for one address, at the handshake and once
// more when session.start has come.
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
		begin(someone) // the place is free again
	})
}

// TestOneAddressBeginsSoFast, even one connection at a time; then it may again.
func TestOneAddressBeginsSoFast(t *testing.T) {
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
				t.Errorf("%d: %v", i, err)
			}
		}
		pass(250 * time.Millisecond)
		if err := begin(); err != nil {
			t.Errorf("a quarter of a second later: %v", err)
		}
		if st.m.Running() != 0 || st.m.waiting.Len() != 0 {
			t.Error("something is still taken")
		}
		st.m.Close()
		if err := begin(); err != ErrDraining {
			t.Errorf("while draining: %v", err)
		}
	})
}

// TestSilentHandshakesKeepNobodyOut: a thousand that connect and say nothing, of one address
// or of many, take no session's place, are no more than the waiting room has, and an honest
// caller among them begins its session.
func TestSilentHandshakesKeepNobodyOut(t *testing.T) {
	for name, from := range map[string]func(i int) netip.Addr{
		"of the caller's address": func(int) netip.Addr { return someone },
		"of another address":      func(int) netip.Addr { return someone.Next() },
		"of one IPv6 network": func(i int) netip.Addr {
			return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))
		},
		"of an address each": func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i / 256), byte(i % 256)}) },
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
				connect(9) // while its session.start is on its way
				honest.say(startText)
				st.fake.Accept(t)
				connect(491)
				honest.expect(t, "session.started")
				if honest.isOver() || st.m.Running() != 1 {
					t.Errorf("of the honest caller's session there is nothing; %d run", st.m.Running())
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
						t.Errorf("%d, one of the newest, had to leave", i)
					}
				}
				if name != "of an address each" {
					most = 10
				}
				if left != most {
					t.Errorf("%d wait, want %d", left, most)
				}
			})
		})
	}
}

// TestTheGreediestMakeRoom: where the room is full, the address with the most in it gives up
// its oldest, and who came alone stays.
func TestTheGreediestMakeRoom(t *testing.T) {
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
				t.Errorf("the greedy one's connection %d has left: %v", i, c.isOver())
			}
		}
		if alone.isOver() {
			t.Error("the one that came alone, and first, had to leave")
		}
	})
}

// TestExemptLoopback: this machine's own addresses are limited as any other, unless the
// operator exempts them; and then still in all.
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
					t.Errorf("%s: a fourth: %v", text, err)
				}
			})
		}
	}
}

// TestWhoWaitsDoesNotHoldADrain: nobody waits for a client that has not begun.
func TestWhoWaitsDoesNotHoldADrain(t *testing.T) {
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
			t.Error("it waited for the whole time")
		}
	})
}

// TestNoPlaceIsToldInTheHandshake: a gateway with a store that other gateways use, too, refuses a new session before the
// connection is upgraded. It accepts a connection that says that it comes back and, while a client is away, any.
func TestNoPlaceIsToldInTheHandshake(t *testing.T) {
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
