package load

import (
	"context"
	"time"
)

// lookEvery is how often something that is waited for is looked at.
const lookEvery = 250 * time.Millisecond

// wait waits until something is done, for a time at most, or until ctx ends: false then.
// It reports every second that it waits, so that it does not look like a run that hangs.
func wait(ctx context.Context, tell func(Status), what string, atMost time.Duration, done func() bool) bool {
	began := time.Now()
	told := began
	for !done() {
		now := time.Now()
		since := now.Sub(began)
		if tell != nil && now.Sub(told) >= tellEvery {
			told = now
			tell(Status{Waiting: what, Elapsed: since, Total: atMost})
		}
		if since >= atMost || !sleepUntil(ctx, now.Add(min(lookEvery, atMost-since))) {
			return false
		}
	}
	return true
}

// sleepUntil waits for a time; false when ctx ends before it.
func sleepUntil(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
