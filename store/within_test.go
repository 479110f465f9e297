package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestEveryOperationEndsInTime: an operation ends after Options.Wait at the latest with an error that the store is
// unavailable; a caller that gives up earlier gets its own error.
func TestEveryOperationEndsInTime(t *testing.T) {
	const wait = 3*time.Second + retryPause/2 // no try begins after the deadline
	for name, tc := range map[string]struct {
		attempt func(ctx context.Context) error
		leaves  time.Duration // when the caller gives up; zero is never
		takes   time.Duration
		tries   int
		want    error
	}{
		"no answer, three times": {attempt: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, takes: wait, tries: 3, want: ErrUnavailable},
		"refused at once, again and again": {attempt: func(context.Context) error { return ErrUnavailable }, takes: wait,
			tries: 1 + int(wait/retryPause), want: ErrUnavailable},
		"an answer": {attempt: func(context.Context) error { return final{ErrChanged} }, tries: 1, want: ErrChanged},
		"the caller gives up": {attempt: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			leaves: 100 * time.Millisecond, takes: 100 * time.Millisecond, tries: 1, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Store{o: Options{Wait: wait}, done: make(chan struct{})}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if tc.leaves > 0 {
					time.AfterFunc(tc.leaves, leave)
				}
				began, tries := time.Now(), 0
				err := s.within(ctx, wait, "trying", func(ctx context.Context) error {
					tries++
					return tc.attempt(ctx)
				})
				if !errors.Is(err, tc.want) || tries != tc.tries {
					t.Errorf("%d tries, %v; want %d, %v", tries, err, tc.tries, tc.want)
				}
				if took := time.Since(began); took != tc.takes {
					t.Errorf("it took %v, want %v", took, tc.takes)
				}
			})
		})
	}
}

// TestAWriteInTheWayEndsInTime: a leader without followers reports for as long as it is asked that the caller's own
// unfinished write is in the way.
func TestAWriteInTheWayEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{o: Options{Wait: 3 * time.Second}, done: make(chan struct{})}
		ctx, end := s.bounded(t.Context())
		defer end()
		began := time.Now()
		var err error
		for err == nil {
			err = s.pause(ctx)
		}
		if took := time.Since(began); took != s.o.Wait || !errors.Is(err, ErrUnavailable) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
