package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestObserved: whoever counts operations is told of each, and whether the store was there.
func TestObserved(t *testing.T) {
	type op struct {
		op     Op
		failed bool
	}
	var mu sync.Mutex
	var told []op
	s := openTest(t, Options{Memory: true, Observe: func(o Op, _ time.Duration, failed bool) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, op{o, failed})
	}})
	if !slices.Contains(told, op{OpOpen, false}) {
		t.Errorf("opening is told of as %v", told)
	}
	told = nil
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approvals().Open(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	err := s.within(t.Context(), time.Millisecond, "writing x", func(context.Context) error { return ErrUnavailable })
	if !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []op{{OpAsk, false}, {OpRead, false}, {OpWrite, true}} {
		if !slices.Contains(told, want) {
			t.Errorf("%v is missing in what was told: %v", want, told)
		}
	}
}
