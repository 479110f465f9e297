package quota

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestEachHasItsOwn: a key at its limit is refused, and another is not.
func TestEachHasItsOwn(t *testing.T) {
	q := New[string](Options{AtOnce: 2})
	for i, tc := range []struct {
		key  string
		want bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}} {
		if room := q.Room(tc.key); room != tc.want {
			t.Errorf("%d: there is room for %s: %v", i, tc.key, room)
		}
		if got := q.Take(tc.key); got != tc.want {
			t.Errorf("%d: %s: %v", i, tc.key, got)
		}
	}
	q.Give("a")
	if !q.Take("a") {
		t.Error("a returned slot cannot be taken")
	}
}

// TestRate: n may begin in a second; then a caller must wait for the reported time.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string](Options{PerSecond: 4})
		for range 4 {
			if wait := q.Begin("a"); wait != 0 {
				t.Fatalf("it must wait for %s", wait)
			}
		}
		for range 3 { // a refusal costs nothing
			if wait := q.Begin("a"); wait != 250*time.Millisecond {
				t.Errorf("it must wait %s", wait)
			}
		}
		if wait := q.Begin("b"); wait != 0 {
			t.Errorf("another waits for %s", wait)
		}
		<-time.After(250 * time.Millisecond)
		if wait := q.Begin("a"); wait != 0 {
			t.Errorf("after its wait it must wait for %s", wait)
		}
	})
}

// TestUnlimited: zero means no limit.
func TestUnlimited(t *testing.T) {
	q := New[int](Options{})
	for range 1000 {
		if q.Begin(1) != 0 || !q.Room(1) || !q.Take(1) {
			t.Fatal("it is limited")
		}
	}
}

// TestStateIsBounded: with any number of keys the least recently used are removed, but never one with a taken slot.
func TestStateIsBounded(t *testing.T) {
	q := New[int](Options{AtOnce: 1, PerSecond: 1})
	q.Begin(-1)
	q.Take(-1)
	for i := range 3 * remembered {
		q.Begin(i)
		if i%3 == 0 {
			q.Take(i)
			q.Give(i)
		}
	}
	if n := len(q.keys); n != remembered+1 || q.idle.Len() != remembered {
		t.Errorf("%d keys are remembered, of them %d idle", n, q.idle.Len())
	}
	if q.Take(-1) {
		t.Error("a taken slot is lost")
	}
	if q.Begin(3*remembered-1) == 0 {
		t.Error("the most recently used key was removed")
	}
	q.Give(-1)
}

// TestAddressKey: an IPv6 customer has one allowance, not one for each of its addresses.
func TestAddressKey(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "::1": "::1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::": "2001:db8:1:2::", "fe80::1%eth0": "fe80::",
	} {
		if got := AddressKey(netip.MustParseAddr(text)); got.String() != want {
			t.Errorf("%s is counted by %s, want %s", text, got, want)
		}
	}
	if got := AddressKey(netip.Addr{}); got.IsValid() {
		t.Errorf("no address is counted by %s", got)
	}
}

// TestWaitingCountsNothing: Wait returns the result of a Begin without counting it, and a burst is the number that may
// begin together.
func TestWaitingCountsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string](Options{PerSecond: 10, Burst: 50})
		for n := range 50 {
			for range 3 {
				if wait := q.Wait("a"); wait != 0 {
					t.Fatalf("%d have begun, and the next has to wait %s", n, wait)
				}
			}
			if wait := q.Begin("a"); wait != 0 {
				t.Fatalf("%d have begun, and the next may not for %s", n, wait)
			}
		}
		for range 3 {
			if wait := q.Wait("a"); wait != 100*time.Millisecond || q.Begin("a") != wait || q.Wait("b") != 0 {
				t.Errorf("after 50: %s", wait)
			}
		}
		<-time.After(100 * time.Millisecond)
		if q.Wait("a") != 0 || q.Begin("a") != 0 || q.Wait("a") == 0 {
			t.Error("a tenth of a second later")
		}
		if free := New[string](Options{}); free.Wait("a") != 0 {
			t.Error("without a limit")
		}
	})
}

// TestLimit: changed limits apply at once, also to existing keys, and release nothing.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string](Options{AtOnce: 3, PerSecond: 2})
		for range 3 {
			if !q.Take("a") {
				t.Fatal("there is no room")
			}
		}
		q.Begin("a")
		q.Begin("a")
		q.Limit(Options{AtOnce: 2, PerSecond: 1})
		if q.Take("a") || q.Room("a") {
			t.Error("three of two are taken, and there is room")
		}
		q.Give("a")
		q.Give("a")
		if !q.Take("a") || q.Take("a") {
			t.Error("one of two is taken")
		}
		<-time.After(time.Second)
		if q.Begin("a") > 0 || q.Begin("a") == 0 {
			t.Error("one may begin in a second")
		}
		q.Limit(Options{})
		if q.Begin("a") > 0 || !q.Take("a") || !q.Take("a") {
			t.Error("there is no limit any more")
		}
	})
}
