package calendar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Made is the result of [Desk.Create].
type Made struct {
	Event Event
	// Created is false if the event existed already.
	Created bool
	// LookedUp means that the calendar did not confirm the event, but a look-up found it.
	LookedUp bool
}

// Create makes an event, once for each key; see [Calendar]. A draft that requests a meeting gets the desk's link if the
// backend makes none.
//
// If the backend's error is Unsure, Create looks the event up within the time of ctx. Its own error is Unsure only if
// that fails too: then the event may exist. Calling Create again is always safe.
func (d *Desk) Create(ctx context.Context, draft Draft) (Made, error) {
	if err := draft.Check(); err != nil {
		return Made{}, err
	}
	if draft.Meeting && draft.MeetingURL == "" {
		draft.MeetingURL = strings.ReplaceAll(d.options.MeetingURL, "{id}", draft.Key)
	}
	e, created, err := d.tryCreate(ctx, draft)
	if err == nil {
		e.Calendar = Primary
		return Made{Event: e, Created: created}, nil
	}
	failed, ok := errors.AsType[*Error](inTime(err))
	if !ok || !failed.Unsure {
		return Made{}, inTime(err)
	}
	return d.lookUp(ctx, draft, failed)
}

// tryCreate leaves time for a look-up and for the tool's answer.
func (d *Desk) tryCreate(ctx context.Context, draft Draft) (Event, bool, error) {
	ctx, cancel := part(ctx, 3, 5)
	defer cancel()
	return d.calendar.Create(ctx, draft)
}

func (d *Desk) lookUp(ctx context.Context, draft Draft, failed *Error) (Made, error) {
	ctx, cancel := part(ctx, 3, 4)
	defer cancel()
	e, found, err := d.calendar.Find(ctx, draft.Key)
	what := fmt.Sprintf("%q, %s (UID %s)", draft.Title, Words(Period{draft.Start, draft.End}, d.options.Zone), draft.Key)
	d.options.Logger.Warn("a calendar has not confirmed an event, so it was looked up",
		"event", draft.Key, "error", failed, "found", found, "look_up_error", err)
	switch {
	case err == nil && !found:
		// The first request may still arrive. It has the same key as another try, so they make one event.
		out := *failed
		out.Unsure = false
		out.Message += " The event is not in the calendar. Asking again is safe and makes it once."
		return Made{}, &out
	case err == nil && (!e.Start.Equal(draft.Start) || !e.End.Equal(draft.End)):
		return Made{}, &Error{Kind: Conflict, Message: "The event " + what +
			" is in the calendar at another time, because a person moved it.", Err: failed}
	case err == nil:
		e.Calendar = Primary
		return Made{Event: e, Created: true, LookedUp: true}, nil
	}
	out := &Error{Kind: Transient, Unsure: true, RetryAfter: failed.RetryAfter, Err: errors.Join(failed, err)}
	out.Message = failed.Message + " It is not known whether the event was made, and it cannot be looked up now: " + what +
		". Asking again is safe: it finds the event, or makes it once."
	if KindOf(inTime(err)) != Transient {
		out.Kind = Conflict
		out.Message = failed.Message + " It is not known whether the event was made, and the calendar does not let it be " +
			"looked up. Look in the calendar for " + what + " before it is asked for again."
	}
	return Made{}, out
}

// inTime turns an exceeded deadline into an *Error. A cancelled call keeps its error.
func inTime(err error) error {
	if _, named := errors.AsType[*Error](err); named || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Errorf(Transient, err, "The calendar does not answer in time.")
}

// part returns a context with n/m of the time that ctx has left, or without a deadline if ctx has none.
func part(ctx context.Context, n, m time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)*n/m)
}
