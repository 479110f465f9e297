package quota

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestWindows: within each sliding window a key may begin a limited number of times, and learns the time of the next.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Windows[string]
		began := time.Now()
		for _, step := range []struct {
			at   time.Duration // since the beginning
			key  string
			wait time.Duration
		}{
			{0, "ada", 0},
			{10 * time.Minute, "ada", 0},
			{20 * time.Minute, "ada", 40 * time.Minute},
			{20 * time.Minute, "bob", 0},
			{time.Hour - time.Second, "ada", time.Second},
			{time.Hour, "ada", 0}, // the first one has left the window
			{time.Hour, "ada", 10 * time.Minute},
			{70 * time.Minute, "ada", 0},
			{71 * time.Minute, "ada", 49 * time.Minute},
			{5 * time.Hour, "ada", 0},
		} {
			pass(step.at - time.Since(began))
			if got := w.Wait(step.key, 2, time.Hour); got != step.wait {
				t.Errorf("%s after %v would wait %v, want %v", step.key, step.at, got, step.wait)
			}
			if at, got := w.Begin(step.key, 2, time.Hour); got != step.wait || at.IsZero() != (got > 0) {
				t.Errorf("%s after %v waits %v, want %v", step.key, step.at, got, step.wait)
			}
		}
	})
}

// TestWindowsUndo: a start that is undone does not count, and a key without starts is not stored.
func TestWindowsUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Windows[string]
		first, _ := w.Begin("ada", 2, time.Hour)
		pass(time.Minute)
		second, _ := w.Begin("ada", 2, time.Hour)
		w.Undo("ada", first)
		w.Undo("ada", first) // once is enough
		w.Undo("eve", first)
		if wait := w.Wait("ada", 2, time.Hour); wait > 0 {
			t.Errorf("waits %v", wait)
		}
		if wait := w.Wait("ada", 1, time.Hour); wait != time.Hour {
			t.Errorf("for one in an hour it waits %v", wait)
		}
		w.Undo("ada", second)
		if len(w.keys) != 0 || w.used.Len() != 0 || w.size != 0 {
			t.Errorf("%d keys with %d beginnings are remembered", len(w.keys), w.size)
		}
	})
}

// TestWindowsAreBounded: the keys with the oldest starts are removed, and a key stores no more starts than needed.
func TestWindowsAreBounded(t *testing.T) {
	w := Windows[string]{most: 10}
	for range 3 {
		w.Begin("first", 3, time.Hour)
	}
	for i := range 8 {
		w.Begin(fmt.Sprint(i), 3, time.Hour)
	}
	if len(w.keys) != 8 || w.used.Len() != 8 || w.size != 8 || w.Wait("first", 3, time.Hour) != 0 {
		t.Errorf("%d keys with %d beginnings", len(w.keys), w.size)
	}
	for range 50 {
		w.Begin("7", 3, time.Nanosecond)
	}
	if len(w.keys) != 8 || w.size != 10 {
		t.Errorf("%d keys with %d beginnings", len(w.keys), w.size)
	}
}

// pass advances time in a bubble.
func pass(d time.Duration) { <-time.After(d) }
