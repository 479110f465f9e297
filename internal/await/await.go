// Package await is how tests wait for another goroutine or another process: for the
// event, and never for a time. A busy machine makes such a test slow and not red.
package await

import (
	"testing"
	"time"
)

// Limit is how long the functions wait before they say what they have waited for. It is
// there for the message alone: nothing that works takes so long on any machine.
const Limit = 3 * time.Minute

// True waits until happened returns true. It asks again and again, so it is for what
// tells nobody; happened runs on the caller's goroutine.
func True(t testing.TB, what string, happened func() bool) {
	t.Helper()
	limit := time.After(Limit)
	for !happened() {
		select {
		case <-limit:
			t.Fatalf("it never happened: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Next waits for the next value of a channel, and fails the test where the channel is
// closed.
func Next[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v, open := <-from:
		if !open {
			t.Fatalf("the channel is closed: %s", what)
		}
		return v
	case <-time.After(Limit):
		t.Fatalf("it never came: %s", what)
		panic("unreachable")
	}
}

// Closed waits until a channel is closed, and fails the test where a value comes.
func Closed[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	select {
	case v, open := <-ch:
		if open {
			t.Fatalf("%v came instead of the end: %s", v, what)
		}
	case <-time.After(Limit):
		t.Fatalf("it never ended: %s", what)
	}
}
