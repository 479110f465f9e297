// Package calendartest has a [Suite] of tests for every backend of package calendar, and a [Fake] backend.
package calendartest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/calendar"
)

var start = time.Date(2030, 5, 6, 9, 0, 0, 0, time.UTC)

// Draft returns a draft of one hour that begins n hours after start.
func Draft(title string, n int) calendar.Draft {
	begin := start.Add(time.Duration(n) * time.Hour)
	return calendar.Draft{
		Key: calendar.Key("ada", title, begin, begin.Add(time.Hour)), Title: title,
		Start: begin, End: begin.Add(time.Hour), Now: start.AddDate(0, 0, -1),
	}
}

// Suite tests a backend. open returns an empty one with all names. Suite calls it for each test, possibly concurrently.
func Suite(t *testing.T, open func(t *testing.T) calendar.Calendar) {
	for name, test := range map[string]func(t *testing.T, c calendar.Calendar){
		"an empty calendar is free":              anEmptyCalendarIsFree,
		"what is created is busy":                whatIsCreatedIsBusy,
		"without details the times are the same": withoutDetailsTheTimesAreTheSame,
		"asked twice it exists once":             askedTwiceItExistsOnce,
		"of many at once one makes it":           ofManyAtOnceOneMakesIt,
		"different keys are different events":    differentKeysAreDifferentEvents,
		"the range is half open":                 theRangeIsHalfOpen,
		"the others are not touched":             theOthersAreNotTouched,
		"an unknown name":                        anUnknownName,
		"an invalid draft":                       anInvalidDraft,
		"a context that has ended":               aContextThatHasEnded,
		"a link":                                 aLink,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func day() calendar.Query {
	return calendar.Query{Calendar: calendar.Primary, From: start, To: start.Add(8 * time.Hour), Details: true}
}

func anEmptyCalendarIsFree(t *testing.T, c calendar.Calendar) {
	for _, name := range calendar.Names() {
		found, err := c.Busy(t.Context(), calendar.Query{Calendar: name, From: start, To: start.Add(time.Hour)})
		if err != nil || len(found.Events)+len(found.Unread) > 0 {
			t.Errorf("%s: %+v %v", name, found, err)
		}
	}
}

func whatIsCreatedIsBusy(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea, \"biscuits\"; 日本語 \\ &amp; <b>", 2)
	d.Description, d.Attendees = "One\ntwo, three; four\\five", []string{"bob@example.com", "eve@example.org"}
	e := create(t, c, d, true)
	if e.ID == "" || !e.Start.Equal(d.Start) || !e.End.Equal(d.End) || e.Title != d.Title ||
		e.Description != d.Description || !slices.Equal(e.Attendees, d.Attendees) {
		t.Errorf("made %+v of %+v", e, d)
	}
	if e.Invitations == "" || e.Invitations == calendar.InvitationsNone {
		t.Errorf("invitations of two attendees are %q", e.Invitations)
	}
	found := busy(t, c, day())
	if len(found) != 1 || !found[0].Start.Equal(d.Start) || !found[0].End.Equal(d.End) || found[0].Title != d.Title {
		t.Errorf("found %+v", found)
	}
}

func withoutDetailsTheTimesAreTheSame(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea", 2)
	create(t, c, d, true)
	q := day()
	q.Details = false
	found := busy(t, c, q)
	if len(found) != 1 || !found[0].Start.Equal(d.Start) || !found[0].End.Equal(d.End) {
		t.Errorf("found %+v", found)
	}
}

func askedTwiceItExistsOnce(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea", 2)
	first := create(t, c, d, true)
	d.Description = "other words"
	second := create(t, c, d, false)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second call changed the event (-first +second):\n%s", diff)
	}
	if found := busy(t, c, day()); len(found) != 1 {
		t.Errorf("found %+v", found)
	}
}

func ofManyAtOnceOneMakesIt(t *testing.T, c calendar.Calendar) {
	const many = 8
	var all sync.WaitGroup
	made := make([]bool, many)
	errs := make([]error, many)
	for i := range many {
		all.Go(func() { _, made[i], errs[i] = c.Create(t.Context(), Draft("Tea", 2)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(made, func(m bool) bool { return !m })); n != 1 {
		t.Errorf("%d calls made the event, want 1", n)
	}
	if found := busy(t, c, day()); len(found) != 1 {
		t.Errorf("found %+v", found)
	}
}

func differentKeysAreDifferentEvents(t *testing.T, c calendar.Calendar) {
	create(t, c, Draft("Tea", 2), true)
	create(t, c, Draft("Cake", 2), true)
	create(t, c, Draft("Tea", 3), true)
	if found := busy(t, c, day()); len(found) != 3 {
		t.Errorf("found %+v", found)
	}
}

func theRangeIsHalfOpen(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea", 2)
	create(t, c, d, true)
	for _, q := range []struct {
		from, to time.Time
		want     int
	}{
		{d.Start.Add(-time.Hour), d.Start, 0}, {d.End, d.End.Add(time.Hour), 0},
		{d.Start.Add(-time.Hour), d.Start.Add(time.Minute), 1}, {d.End.Add(-time.Minute), d.End.Add(time.Hour), 1},
		{d.Start.Add(20 * time.Minute), d.Start.Add(30 * time.Minute), 1},
	} {
		found := busy(t, c, calendar.Query{Calendar: calendar.Primary, From: q.from, To: q.to})
		if len(found) != q.want {
			t.Errorf("%s to %s: %+v, want %d", q.from, q.to, found, q.want)
		}
	}
}

func theOthersAreNotTouched(t *testing.T, c calendar.Calendar) {
	create(t, c, Draft("Tea", 2), true)
	for _, name := range []calendar.Name{calendar.Team, calendar.Personal} {
		q := day()
		q.Calendar = name
		if found := busy(t, c, q); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func anUnknownName(t *testing.T, c calendar.Calendar) {
	q := day()
	q.Calendar = "other"
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("got %v", err)
	}
}

func anInvalidDraft(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea", 2)
	d.Attendees = []string{"bob@example.com\r\nX:y"}
	if _, _, err := c.Create(t.Context(), d); calendar.KindOf(err) != calendar.Invalid {
		t.Errorf("got %v", err)
	}
}

func aContextThatHasEnded(t *testing.T, c calendar.Calendar) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Busy(ctx, day()); !errors.Is(err, context.Canceled) && err != nil {
		t.Errorf("busy: %v", err)
	}
	if _, _, err := c.Create(ctx, Draft("Tea", 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	if found := busy(t, c, day()); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func aLink(t *testing.T, c calendar.Calendar) {
	d := Draft("Tea", 2)
	d.Meeting, d.MeetingURL = true, "https://meet.example.com/fallback"
	e := create(t, c, d, true)
	if !strings.HasPrefix(e.MeetingURL, "https://") {
		t.Errorf("the link is %q", e.MeetingURL)
	}
	if again := create(t, c, d, false); again.MeetingURL != e.MeetingURL {
		t.Errorf("the link was %q and is %q", e.MeetingURL, again.MeetingURL)
	}
}

func create(t *testing.T, c calendar.Calendar, d calendar.Draft, want bool) calendar.Event {
	t.Helper()
	e, created, err := c.Create(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if created != want {
		t.Errorf("created is %t", created)
	}
	return e
}

func busy(t *testing.T, c calendar.Calendar, q calendar.Query) []calendar.Event {
	t.Helper()
	found, err := c.Busy(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Unread) > 0 {
		t.Errorf("unread: %+v", found.Unread)
	}
	return found.Events
}
