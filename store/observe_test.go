package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestObserved: the observer gets each operation, and whether the store was available.
func TestObserved(t *testing.T) {
	type op struct {
		op     Op
		failed bool
	}
	var mu sync.Mutex
	var reported []op
	s := openTest(t, Options{Memory: true, Observe: func(o Op, _ time.Duration, failed bool) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, op{o, failed})
	}})
	if !slices.Contains(reported, op{OpOpen, false}) {
		t.Errorf("opening is reported as %v", reported)
	}
	reported = nil
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approvals.Open(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	err := s.within(t.Context(), time.Millisecond, "writing x", func(context.Context) error { return ErrUnavailable })
	if !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []op{{OpAsk, false}, {OpRead, false}, {OpWrite, true}} {
		if !slices.Contains(reported, want) {
			t.Errorf("%v is missing from the reports: %v", want, reported)
		}
	}
}
