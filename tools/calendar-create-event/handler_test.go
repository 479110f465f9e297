package calendarcreateevent

import (
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
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

var now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func args() Args {
	return Args{Title: " Review ", StartTime: "2026-11-23T10:00:00+01:00", EndTime: "2026-11-23T11:00:00+01:00"}
}

func run(t *testing.T, c calendar.Calendar, a Args, o calendar.SchedulerOptions) (Answer, error) {
	t.Helper()
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{
		Args: a, Needs: Needs{Calendar: calendar.NewScheduler(c, o)}, Session: registry.Session{Mode: spec.ModeText, UserID: "ada", Now: now},
	})
	if err != nil {
		return Answer{}, err
	}
	registrytest.Fits(t, "calendar-create-event", result.Data)
	return result.Data.(Answer), nil
}

func TestMade(t *testing.T) {
	f := calendartest.NewFake()
	a := args()
	about := "The hall."
	a.StartTime = strings.ToLower(a.StartTime) // RFC 3339 section 5.6
	a.Description, a.Attendees, a.IncludeZoomLink = &about, []string{"bob@example.com", " mailto:eve@example.com", "Bob@Example.com"}, true
	got, err := run(t, f, a, calendar.SchedulerOptions{MeetingURL: "https://meet.example.com/{id}"})
	if err != nil {
		t.Fatal(err)
	}
	key := calendar.Key("ada", "Review", time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))
	want := Answer{
		Created: true, ID: key, Title: "Review", Start: "2026-11-23T09:00:00.000Z", End: "2026-11-23T10:00:00.000Z",
		Words: "Mon 23 Nov 2026 09:00-10:00", TimeZone: "UTC", Attendees: []string{"bob@example.com", "eve@example.com"},
		Invitations: calendar.InvitationsSent, MeetingURL: "https://meet.example.com/" + key,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d := f.Drafts(); len(d) != 1 || d[0].Description != about || !d[0].Now.Equal(now) {
		t.Errorf("%+v", d)
	}
}

// TestOnce: the same time in another notation, with other attendees, is the same event; another user's is not.
func TestOnce(t *testing.T) {
	f := calendartest.NewFake()
	first, err := run(t, f, args(), calendar.SchedulerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again := args()
	again.Title, again.StartTime, again.EndTime, again.Attendees = "review", "2026-11-23T09:00:00Z", "2026-11-23T09:00:00.000-01:00", []string{"bob@example.com"}
	second, err := run(t, f, again, calendar.SchedulerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first.Created = false
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if n := len(f.Events[calendar.Primary]); n != 1 {
		t.Errorf("%d events", n)
	}
	if _, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: args(), Needs: Needs{calendar.NewScheduler(f, calendar.SchedulerOptions{})}, Session: registry.Session{UserID: "eve", Now: now}}); err != nil || len(f.Events[calendar.Primary]) != 2 {
		t.Errorf("%d events, %v", len(f.Events[calendar.Primary]), err)
	}
}

// TestInvalidAttendees: no event is made with only some of its attendees; each invalid address is named.
func TestInvalidAttendees(t *testing.T) {
	f := calendartest.NewFake()
	a := args()
	a.Attendees = []string{"bob", "eve@example.com", "x@y", "<a@b.cd>", "a b@example.com", "bob@example..com"}
	_, err := run(t, f, a, calendar.SchedulerOptions{})
	var e *registry.ToolError
	if !errors.As(err, &e) || e.Type != registry.ErrorValidation || len(f.Drafts()) > 0 {
		t.Fatalf("%v, drafts %v", err, f.Drafts())
	}
	data, _ := json.Marshal(e.Details)
	for i := range a.Attendees {
		path := fmt.Sprintf(`"path":"/attendees/%d"`, i)
		if strings.Contains(string(data), path) != (i != 1) {
			t.Errorf("%d: %s", i, data)
		}
	}
}

// TestMissingLink: the answer says that there is no link, and why.
func TestMissingLink(t *testing.T) {
	f := calendartest.NewFake()
	a := args()
	a.IncludeZoomLink = true
	got, err := run(t, f, a, calendar.SchedulerOptions{})
	if err != nil || got.MeetingURL != "" || !strings.Contains(got.MeetingNote, "created without a link") {
		t.Errorf("%+v %v", got, err)
	}
	if got, err = run(t, f, a, calendar.SchedulerOptions{}); err != nil || !strings.Contains(got.MeetingNote, "already existed") {
		t.Errorf("%+v %v", got, err)
	}
	if note := noLink(calendar.Event{MeetingPending: true}, true); !strings.Contains(note, "being created") {
		t.Error(note)
	}
}

// TestValidation: all faults are named at once, and nothing is made.
func TestValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Args)
		paths  []string
	}{
		"blank":          {func(a *Args) { a.Title = "\t" }, []string{"/title"}},
		"unseen":         {func(a *Args) { a.Title = "\u3164" }, []string{"/title"}},
		"backwards":      {func(a *Args) { a.EndTime = "2026-11-23T08:59:00Z" }, []string{"/end_time"}},
		"too long":       {func(a *Args) { a.EndTime = "2027-11-23T08:59:00Z" }, []string{"/end_time"}},
		"weeks":          {func(a *Args) { a.EndTime = "2026-11-30T10:00:01+01:00" }, []string{"/end_time"}},
		"over":           {func(a *Args) { a.StartTime, a.EndTime = "2025-11-23T10:00:00Z", "2025-11-23T11:00:00Z" }, []string{"/start_time"}},
		"begun":          {func(a *Args) { a.StartTime, a.EndTime = "2026-11-20T07:49:59Z", "2026-11-20T08:30:00Z" }, []string{"/start_time"}},
		"a far year":     {func(a *Args) { a.StartTime, a.EndTime = "2126-11-23T10:00:00Z", "2126-11-23T11:00:00Z" }, []string{"/start_time"}},
		"the last year":  {func(a *Args) { a.StartTime, a.EndTime = "9999-12-31T10:00:00Z", "9999-12-31T11:00:00Z" }, []string{"/start_time"}},
		"the first year": {func(a *Args) { a.StartTime, a.EndTime = "0001-01-01T10:00:00Z", "0001-01-01T11:00:00Z" }, []string{"/start_time"}},
		"no such day":    {func(a *Args) { a.StartTime = "2027-02-29T10:00:00Z" }, []string{"/start_time"}},
		"a leap second":  {func(a *Args) { a.StartTime = "2026-12-31T23:59:60Z" }, []string{"/start_time"}},
		"no such offset": {func(a *Args) { a.StartTime, a.EndTime = "2026-11-23T10:00:00+19:00", "2026-11-23T11:00:00+19:00" }, []string{"/start_time", "/end_time"}},
		"invisible":      {func(a *Args) { a.Title = "\u200b \u00ad\u2060" }, []string{"/title"}},
		"dots":           {func(a *Args) { a.Title = "...!?" }, []string{"/title"}},
		"two lines":      {func(a *Args) { a.Title = "Tea\r\nATTENDEE:x" }, []string{"/title"}},
		"invalid guests": {func(a *Args) { a.Attendees = []string{"bob", "eve"} }, []string{"/attendees/0", "/attendees/1"}},
		"all at once": {func(a *Args) {
			a.Title, a.EndTime, a.Attendees = " ", a.StartTime, []string{"bob"}
		}, []string{"/title", "/end_time", "/attendees/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := calendartest.NewFake()
			a := args()
			tc.change(&a)
			_, err := run(t, f, a, calendar.SchedulerOptions{})
			before := Check(t.Context(), registry.Call[Args, Needs]{Args: a, Needs: Needs{Calendar: calendar.NewScheduler(f, calendar.SchedulerOptions{})}, Session: registry.Session{UserID: "ada", Now: now}})
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != registry.ErrorValidation || e.Retryable || len(f.Drafts()) > 0 {
				t.Fatalf("%v, drafts %v", err, f.Drafts())
			}
			if before == nil || before.Error() != err.Error() {
				t.Errorf("before the approval: %v; after: %v", before, err)
			}
			data, _ := json.Marshal(e.Details)
			for _, path := range tc.paths {
				if !strings.Contains(string(data), `"path":"`+path+`"`) {
					t.Errorf("%s is missing from %s", path, data)
				}
			}
		})
	}
	a := args()
	a.StartTime, a.EndTime, a.Title = "2026-11-20T07:50:00Z", "2026-11-27T07:50:00Z", "🎂"
	if _, err := run(t, calendartest.NewFake(), a, calendar.SchedulerOptions{}); err != nil {
		t.Errorf("an event from now, for a week: %v", err)
	}
}

func TestFailures(t *testing.T) {
	unsure := calendar.Errorf(calendar.Transient, errors.New("https://u:secret@x"), "No answer.")
	unsure.Unsure = true
	for name, tc := range map[string]struct {
		err    error
		want   registry.ErrorType
		retry  bool
		unsure bool
	}{
		"refused":   {calendar.Errorf(calendar.Auth, nil, "No."), registry.ErrorAuth, false, false},
		"too often": {calendar.Errorf(calendar.RateLimit, nil, "No."), registry.ErrorRateLimit, true, false},
		"no answer": {unsure, registry.ErrorTransient, true, false},
		"taken":     {calendar.Errorf(calendar.Conflict, nil, "No."), registry.ErrorConflict, false, false},
		"unknown":   {calendar.NoCalendar(calendar.Primary), registry.ErrorNotFound, false, false},
		"wrong":     {calendar.Errorf(calendar.Permanent, nil, "No."), registry.ErrorPermanent, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := calendartest.NewFake()
			f.CreateErr = tc.err
			_, err := run(t, f, args(), calendar.SchedulerOptions{})
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != tc.want || e.Retryable != tc.retry || e.PartialSideEffects != tc.unsure || strings.Contains(e.Message, "secret") || e.Suggestion == "" || e.Details != nil {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestUnknownOutcome: an event that may have been made and cannot be looked up is reported as such, with a hint, and
// may be requested again.
func TestUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		find error
		want registry.ErrorType
		may  bool
	}{
		"away":      {calendar.Errorf(calendar.Transient, nil, "Refused."), registry.ErrorTransient, true},
		"forbidden": {calendar.Errorf(calendar.Auth, nil, "No."), registry.ErrorConflict, false},
	} {
		f := calendartest.NewFake()
		unsure := calendar.Errorf(calendar.Transient, nil, "No answer.")
		unsure.Unsure = true
		f.CreateErr, f.FindErr = unsure, tc.find
		_, err := run(t, f, args(), calendar.SchedulerOptions{})
		var e *registry.ToolError
		key := calendar.Key("ada", "Review", time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))
		if !errors.As(err, &e) || e.Type != tc.want || !e.PartialSideEffects || e.Repeatable != tc.may || e.Retryable != tc.may || !strings.Contains(e.Message, key) || !strings.Contains(e.Message, "Review") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestOutputIsTheAnswer(t *testing.T) { registrytest.Describes[Answer](t, "calendar-create-event") }
