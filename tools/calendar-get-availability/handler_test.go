package calendargetavailability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

func at(hour, minute int) time.Time { return time.Date(2026, 11, 23, hour, minute, 0, 0, time.UTC) }

func args() Args {
	return Args{StartDate: "2026-11-23T09:00:00+01:00", EndDate: "2026-11-23T13:00:00+01:00", Calendars: []ArgsCalendarsItem{"primary"}, MinDurationMinutes: 30}
}

func run(t *testing.T, c calendar.Calendar, a Args) (Answer, error) {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{
		Args: a, Needs: Needs{Calendar: calendar.NewScheduler(c, calendar.SchedulerOptions{Zone: berlin})}, Session: registry.Session{Mode: spec.ModeText},
	})
	if err != nil {
		return Answer{}, err
	}
	registrytest.Fits(t, "calendar-get-availability", result.Data)
	return result.Data.(Answer), nil
}

// TestAnswer: busy times are merged, free ones are the long enough rest, and all are in the calendar's zone.
func TestAnswer(t *testing.T) {
	f := calendartest.NewFake()
	f.Events[calendar.Primary] = []calendar.Event{
		{Title: "Standup", Start: at(8, 30), End: at(9, 15)}, {Title: "Call", Start: at(9, 0), End: at(9, 45)}, {Title: "Review", Start: at(10, 0), End: at(10, 30)},
	}
	got, err := run(t, f, args())
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{
		Summary: "Mon 23 Nov 2026 09:00-13:00 (Europe/Berlin): Mon 23 Nov 2026 09:30-10:45 and Mon 23 Nov 2026 11:00-11:30 are booked. " +
			"Free for 30 minutes or more: Mon 23 Nov 2026 09:00-09:30 and Mon 23 Nov 2026 11:30-13:00.",
		TimeZone: "Europe/Berlin",
		Busy: []calendar.PeriodReply{
			{Start: "2026-11-23T08:30:00.000Z", End: "2026-11-23T09:45:00.000Z", Words: "Mon 23 Nov 2026 09:30-10:45", Minutes: 75},
			{Start: "2026-11-23T10:00:00.000Z", End: "2026-11-23T10:30:00.000Z", Words: "Mon 23 Nov 2026 11:00-11:30", Minutes: 30},
		},
		Free: []calendar.PeriodReply{
			{Start: "2026-11-23T08:00:00.000Z", End: "2026-11-23T08:30:00.000Z", Words: "Mon 23 Nov 2026 09:00-09:30", Minutes: 30},
			{Start: "2026-11-23T10:30:00.000Z", End: "2026-11-23T12:00:00.000Z", Words: "Mon 23 Nov 2026 11:30-13:00", Minutes: 90},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if asked := f.Asked(); len(asked) != 1 || asked[0].Details {
		t.Errorf("asked %+v", asked)
	}
}

// TestDetailsOnlyWhenAskedFor: private details are never given.
func TestDetailsOnlyWhenAskedFor(t *testing.T) {
	f := calendartest.NewFake()
	f.Events[calendar.Primary] = []calendar.Event{
		{Title: "Doctor", Location: "Clinic", Attendees: []string{"doc@example.com"}, Private: true, Start: at(8, 0), End: at(9, 0)},
	}
	f.Events[calendar.Team] = []calendar.Event{{Title: "Plan", Location: "Room 4", MeetingURL: "https://m.example/1", Tentative: true, Attendees: []string{"bob@example.com"}, Start: at(9, 0), End: at(10, 0)}}
	a := args()
	a.Calendars = []ArgsCalendarsItem{"primary", "team", "primary"}
	got, err := run(t, f, a)
	data, _ := json.Marshal(got)
	if err != nil || strings.Contains(string(data), "Plan") || strings.Contains(string(data), "Room") || got.Events != nil {
		t.Errorf("without: %s %v", data, err)
	}
	a.IncludeDetails = true
	if got, err = run(t, f, a); err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Title: "private", Start: "2026-11-23T08:00:00.000Z", End: "2026-11-23T09:00:00.000Z", Words: "Mon 23 Nov 2026 09:00-10:00", Calendar: "primary", Private: true},
		{Title: "Plan", Start: "2026-11-23T09:00:00.000Z", End: "2026-11-23T10:00:00.000Z", Words: "Mon 23 Nov 2026 10:00-11:00", Calendar: "team",
			Tentative: true, Location: "Room 4", MeetingURL: "https://m.example/1", Attendees: []string{"bob@example.com"}},
	}
	if diff := cmp.Diff(want, got.Events); diff != "" {
		t.Error(diff)
	}
	if len(f.Asked()) != 4 {
		t.Errorf("a calendar named twice must be asked once: %+v", f.Asked())
	}
}

// TestAGapIsNamed: a failing calendar does not hide the others, and its time does not count as free.
func TestAGapIsNamed(t *testing.T) {
	f := calendartest.NewFake()
	f.Errs[calendar.Team] = calendar.Errorf(calendar.Auth, errors.New("401 secret"), "The calendar server does not accept the password.")
	f.Unread = []calendar.Unread{{ID: "x", Err: errors.New("bad")}}
	a := args()
	a.Calendars = []ArgsCalendarsItem{"team", "primary"}
	got, err := run(t, f, a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Missing{{"team", registry.ErrorAuth, "The calendar server does not accept the password."}}, got.Missing); diff != "" {
		t.Error(diff)
	}
	if got.Unread != 1 || !strings.Contains(got.Summary, "Not known: the team calendar") || !strings.Contains(got.Summary, "One entry could not be read") {
		t.Errorf("%+v", got)
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		want  registry.ErrorType
		retry bool
	}{
		"refused":   {calendar.Errorf(calendar.Auth, nil, "No."), registry.ErrorAuth, false},
		"too often": {&calendar.Error{Kind: calendar.RateLimit, Message: "No.", RetryAfter: 1500 * time.Millisecond}, registry.ErrorRateLimit, true},
		"away":      {calendar.Errorf(calendar.Transient, nil, "No."), registry.ErrorTransient, true},
		"unknown":   {calendar.NoCalendar(calendar.Primary), registry.ErrorNotFound, false},
		"wrong":     {calendar.Errorf(calendar.Permanent, nil, "No."), registry.ErrorPermanent, false},
		"any other": {errors.New("secret"), registry.ErrorTransient, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := calendartest.NewFake()
			f.Errs[calendar.Primary] = tc.err
			_, err := run(t, f, args())
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != tc.want || e.Retryable != tc.retry || strings.Contains(e.Message, "secret") || e.Suggestion == "" || e.PartialSideEffects {
				t.Errorf("%v", err)
			}
			if tc.want == registry.ErrorRateLimit {
				if diff := cmp.Diff(calendar.RetryAfter{Seconds: 2}, e.Details); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestWithdrawn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Execute(ctx, registry.Call[Args, Needs]{Args: args(), Needs: Needs{Calendar: calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{})}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestValidation(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, path string }{
		"backwards":       {"2026-11-23T10:00:00Z", "2026-11-23T09:00:00Z", "/end_date"},
		"in another zone": {"2026-11-23T10:00:00+01:00", "2026-11-23T09:00:00Z", "/end_date"},
		"too long":        {"2026-10-01T00:00:00Z", "2026-11-01T00:00:01Z", "/end_date"},
	} {
		f := calendartest.NewFake()
		a := args()
		a.StartDate, a.EndDate = tc.from, tc.to
		_, err := run(t, f, a)
		var e *registry.ToolError
		if !errors.As(err, &e) || e.Type != registry.ErrorValidation {
			t.Fatalf("%s: %v", name, err)
		}
		if data, _ := json.Marshal(e.Details); !strings.Contains(string(data), `"path":"`+tc.path+`"`) || len(f.Asked()) > 0 {
			t.Errorf("%s: %s, asked %v", name, data, f.Asked())
		}
	}
}

// TestLongAnswers: omitted entries are counted.
func TestLongAnswers(t *testing.T) {
	f := calendartest.NewFake()
	for i := range maxPeriods + 7 {
		start := at(0, 0).Add(time.Duration(i) * 2 * time.Hour)
		f.Events[calendar.Primary] = append(f.Events[calendar.Primary], calendar.Event{Title: fmt.Sprint(i), Start: start, End: start.Add(time.Hour)})
	}
	a := args()
	a.StartDate, a.EndDate, a.IncludeDetails = "2026-11-23T00:00:00Z", "2026-12-20T00:00:00Z", true
	got, err := run(t, f, a)
	if err != nil || len(got.Busy) != maxPeriods || got.MoreBusy != 7 || len(got.Free) != maxPeriods || got.MoreFree != 7 || len(got.Events) != maxEvents || got.MoreEvents != 7 {
		t.Errorf("%d+%d busy, %d+%d free, %d+%d events, %v", len(got.Busy), got.MoreBusy, len(got.Free), got.MoreFree, len(got.Events), got.MoreEvents, err)
	}
}

// TestUnknownCalendars: the time of an unknown calendar does not count as free.
func TestUnknownCalendars(t *testing.T) {
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{
		Args: args(), Needs: Needs{Calendar: calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{})}, Invalid: []document.Problem{{Path: "/calendars/1"}},
	})
	if err != nil || !strings.Contains(result.Data.(Answer).Summary, "not checked") {
		t.Errorf("%+v %v", result.Data, err)
	}
}

func TestOutputIsTheAnswer(t *testing.T) {
	registrytest.Describes[Answer](t, "calendar-get-availability")
}
