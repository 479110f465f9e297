package calendar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

// TestWhatIsNotConfirmedIsLookedUp: what may have been made is told as what it is, within
// the time of the call, and never as "nobody knows" while the calendar can say it.
func TestWhatIsNotConfirmedIsLookedUp(t *testing.T) {
	lost := func() error {
		return &calendar.Error{Kind: calendar.Transient, Message: "It broke off.", Unsure: true, RetryAfter: time.Second}
	}
	draft := calendartest.Draft("Tea", 1)
	for name, tc := range map[string]struct {
		set    func(f *calendartest.Fake)
		made   bool
		kind   calendar.Kind
		unsure bool
		words  string
	}{
		"not sent":             {func(f *calendartest.Fake) { f.CreateErr = calendar.Errorf(calendar.Transient, nil, "Refused.") }, false, calendar.Transient, false, "Refused."},
		"lost, and there":      {func(f *calendartest.Fake) { f.CreateErr, f.Landed = lost(), true }, true, "", false, ""},
		"lost, and not there":  {func(f *calendartest.Fake) { f.CreateErr = lost() }, false, calendar.Transient, false, "is not in the calendar"},
		"hangs, and there":     {func(f *calendartest.Fake) { f.Hang, f.Landed = map[string]bool{"create": true}, true }, true, "", false, ""},
		"hangs, and not there": {func(f *calendartest.Fake) { f.Hang = map[string]bool{"create": true} }, false, calendar.Transient, false, "is not in the calendar"},
		"hangs for ever":       {func(f *calendartest.Fake) { f.Hang = map[string]bool{"create": true, "find": true} }, false, calendar.Transient, true, draft.Key},
		"lost, and away": {func(f *calendartest.Fake) {
			f.CreateErr, f.FindErr = lost(), calendar.Errorf(calendar.Transient, nil, "Refused.")
		}, false, calendar.Transient, true, draft.Key},
		"lost, and forbidden": {func(f *calendartest.Fake) {
			f.CreateErr, f.FindErr = lost(), calendar.Errorf(calendar.Auth, nil, "No.")
		}, false, calendar.Conflict, true, draft.Key},
		"lost, and moved": {func(f *calendartest.Fake) {
			f.CreateErr = lost()
			f.Events[calendar.Primary] = []calendar.Event{{ID: draft.Key, Start: draft.Start.Add(time.Hour), End: draft.End.Add(time.Hour)}}
		}, false, calendar.Conflict, false, "moved"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := calendartest.NewFake()
				tc.set(f)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				made, err := calendar.NewScheduler(f, calendar.SchedulerOptions{}).Create(ctx, draft)
				if took := time.Since(began); took > 9*time.Second {
					t.Errorf("it took %s of 10 s", took)
				}
				if tc.made {
					if err != nil || !made.LookedUp || made.Event.ID != draft.Key || made.Event.Calendar != calendar.Primary {
						t.Errorf("%+v %v", made, err)
					}
					return
				}
				e, ok := errors.AsType[*calendar.Error](err)
				if !ok || e.Kind != tc.kind || e.Unsure != tc.unsure || !strings.Contains(e.Message, tc.words) {
					t.Errorf("%+v", err)
				}
			})
		})
	}
}

// TestAWithdrawnCallStaysOne: what its caller has withdrawn is no deadline.
func TestAWithdrawnCallStaysOne(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{}).Create(ctx, calendartest.Draft("Tea", 1)); !errors.Is(err, context.Canceled) || calendar.KindOf(err) != calendar.Transient {
		t.Errorf("%v", err)
	}
}

// TestAHangingCalendarIsMissing: the others' answers are told in time.
func TestAHangingCalendarIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := calendartest.NewFake()
		f.Hang = map[string]bool{"busy team": true}
		desk := calendar.NewScheduler(f, calendar.SchedulerOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		d := calendartest.Draft("Tea", 1)
		r := calendar.Request{From: d.Start, To: d.End, Calendars: []calendar.Name{calendar.Primary, calendar.Team}}
		a, err := desk.Availability(ctx, r)
		if err != nil || ctx.Err() != nil || len(a.Missing) != 1 || a.Missing[0].Calendar != calendar.Team || calendar.KindOf(a.Missing[0].Err) != calendar.Transient {
			t.Errorf("%+v %v", a, err)
		}
		r.Calendars = r.Calendars[1:]
		ctx, cancel = context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, err = desk.Availability(ctx, r)
		if e, ok := errors.AsType[*calendar.Error](err); !ok || e.Kind != calendar.Transient || ctx.Err() != nil {
			t.Errorf("%v", err)
		}
	})
}
