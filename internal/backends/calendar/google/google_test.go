package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

func TestSuite(t *testing.T) {
	calendartest.Suite(t, func(t *testing.T) calendar.Calendar { return newFake(t).open(t, nil) })
}

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func ask(details bool) calendar.Query {
	return calendar.Query{Calendar: calendar.Primary, From: monday, To: monday.AddDate(0, 0, 1), Details: details}
}

func times(from, to string) (eventTime, eventTime) {
	return eventTime{DateTime: "2026-11-23T" + from}, eventTime{DateTime: "2026-11-23T" + to}
}

// TestDetails: what does not take time is not busy, days are those of the calendar's
// zone, and pages are all read.
func TestDetails(t *testing.T) {
	f := newFake(t)
	f.pageSize = 2
	add := func(id, from, to string, change func(*event)) {
		e := event{ID: id, Summary: id, Status: "confirmed"}
		e.Start, e.End = times(from, to)
		if change != nil {
			change(&e)
		}
		f.calendars["primary"] = append(f.calendars["primary"], e)
	}
	add("plain", "09:00:00+01:00", "10:00:00+01:00", func(e *event) { e.Location, e.HangoutLink = "Room 4", "https://meet.google.com/x" })
	add("tentative", "10:00:00Z", "11:00:00Z", func(e *event) { e.Status = "tentative" })
	add("cancelled", "11:00:00Z", "12:00:00Z", func(e *event) { e.Status = "cancelled" })
	add("free", "11:00:00Z", "12:00:00Z", func(e *event) { e.Transparency = "transparent" })
	add("declined", "11:00:00Z", "12:00:00Z", func(e *event) {
		e.Attendees = []attendee{{Email: "ada@example.com", Self: true, ResponseStatus: "declined"}}
	})
	add("office", "11:00:00Z", "12:00:00Z", func(e *event) { e.EventType = "workingLocation" })
	add("others decline", "12:00:00Z", "13:00:00Z", func(e *event) {
		e.Attendees = []attendee{{Email: "bob@example.com", ResponseStatus: "declined"}, {Email: "room@resource.example.com", Resource: true}}
	})
	add("secret", "14:00:00Z", "15:00:00Z", func(e *event) { e.Visibility = "private" })
	add("day", "", "", func(e *event) { e.Start, e.End = eventTime{Date: "2026-11-23"}, eventTime{Date: "2026-11-24"} })
	add("link", "16:00:00Z", "17:00:00Z", func(e *event) { e.Location = "https://zoom.example.com/j/1" })
	found, err := f.open(t, nil).Busy(t.Context(), ask(true))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range found.Events {
		got[e.ID] = fmt.Sprintf("%s-%s %t %t %t %s %s %v", e.Start.Format("2 15:04"), e.End.Format("15:04"), e.Tentative, e.Private, e.AllDay, e.Location, e.MeetingURL, e.Attendees)
	}
	want := map[string]string{
		"plain":          "23 08:00-09:00 false false false Room 4 https://meet.google.com/x []",
		"tentative":      "23 10:00-11:00 true false false   []",
		"others decline": "23 12:00-13:00 false false false   [bob@example.com]",
		"secret":         "23 14:00-15:00 false true false   []",
		"day":            "22 23:00-23:00 false false true   []",
		"link":           "23 16:00-17:00 false false false https://zoom.example.com/j/1 https://zoom.example.com/j/1 []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnread: an event whose time is not understood is named, and so is a list without
// end.
func TestUnread(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		answer(w, map[string]any{"items": []map[string]any{{"id": "odd", "start": map[string]string{"dateTime": "soon"}, "end": map[string]string{}}}, "nextPageToken": "again"})
		return true
	})
	found, err := c.Busy(t.Context(), ask(true))
	if err != nil || len(found.Events) > 0 || len(found.Unread) != maxPages+1 || !errors.Is(found.Unread[maxPages].Err, errTooMany) {
		t.Errorf("%d unread, %v", len(found.Unread), err)
	}
}

// TestTokens: one token serves all calls, a refused one is got anew once, and both
// kinds of credentials work.
func TestTokens(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	for range 3 {
		if _, err := c.Busy(t.Context(), ask(false)); err != nil {
			t.Fatal(err)
		}
	}
	if f.tokens != 1 {
		t.Errorf("%d tokens", f.tokens)
	}
	f.mu.Lock()
	f.good = "revoked"
	f.mu.Unlock()
	if _, created, err := c.Create(t.Context(), calendartest.Draft("Tea", 1)); err != nil || !created || f.tokens != 2 {
		t.Errorf("after it was revoked: %v, %d tokens", err, f.tokens)
	}
	user := f.open(t, func(o *Options) { o.Credentials, o.Subject = f.user(), "" })
	if _, err := user.Busy(t.Context(), ask(false)); err != nil || f.tokens != 3 {
		t.Errorf("a user: %v, %d tokens", err, f.tokens)
	}
}

// TestNoToken: the error says why there is no token, without a word of the request.
func TestNoToken(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		want   calendar.Kind
	}{
		"refused":   {400, calendar.Auth},
		"forbidden": {403, calendar.Auth},
		"too often": {429, calendar.RateLimit},
		"away":      {503, calendar.Transient},
	} {
		f := newFake(t)
		c := f.open(t, nil)
		f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(tc.status)
			answer(w, map[string]string{"error": "some_error", "error_description": "secret " + r.FormValue("assertion")})
			return true
		})
		_, err := c.Busy(t.Context(), ask(false))
		if calendar.KindOf(err) != tc.want || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "some_error") {
			t.Errorf("%s: %v", name, err)
		}
		_, _, err = c.Create(t.Context(), calendartest.Draft("Tea", 1))
		if e, ok := err.(*calendar.Error); !ok || e.Unsure {
			t.Errorf("%s: nothing was sent: %v", name, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	f := newFake(t)
	key := string(f.serviceAccount())
	for name, tc := range map[string]struct{ data, subject string }{
		"no JSON":           {"secret", ""},
		"another type":      {`{"type":"external_account"}`, ""},
		"no key":            {strings.Replace(key, "PRIVATE KEY", "OTHER THING", 1), ""},
		"a broken key":      {`{"type":"service_account","client_email":"a@b.cd","private_key":"secret"}`, ""},
		"no refresh token":  {`{"type":"authorized_user","client_id":"a","client_secret":"secret"}`, ""},
		"a user for others": {string(f.user()), "ada@example.com"},
		"plain http":        {strings.Replace(string(f.user()), "127.0.0.1", "example.com", 1), ""},
	} {
		if _, err := New(Options{Credentials: []byte(tc.data), Subject: tc.subject}); !errors.Is(err, ErrCredentials) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Credentials: f.user(), BaseURL: "http://example.com"}); err == nil {
		t.Error("a token goes out in the clear")
	}
}

// TestRefusals: the errors of guides/errors, for reading and for creating.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		status       int
		domain, why  string
		message      string
		busy, create calendar.Kind
		unsure       bool
	}{
		{400, "calendar", "timeRangeEmpty", "The specified time range is empty.", calendar.Permanent, calendar.Permanent, false},
		{401, "global", "authError", "Invalid Credentials", calendar.Auth, calendar.Auth, false},
		{403, "usageLimits", "userRateLimitExceeded", "User Rate Limit Exceeded", calendar.RateLimit, calendar.RateLimit, false},
		{403, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", calendar.RateLimit, calendar.RateLimit, false},
		{403, "usageLimits", "quotaExceeded", "Calendar usage limits exceeded.", calendar.RateLimit, calendar.RateLimit, false},
		{403, "calendar", "forbiddenForNonOrganizer", "Shared properties can only be changed by the organizer of the event.", calendar.Auth, calendar.Auth, false},
		{403, "calendar", "forbiddenForServiceAccounts", "Service accounts cannot invite attendees.", calendar.Permanent, calendar.Permanent, false},
		{404, "global", "notFound", "Not Found", calendar.NotFound, calendar.NotFound, false},
		{409, "global", "duplicate", "The requested identifier already exists.", calendar.Conflict, calendar.Conflict, false},
		{410, "calendar", "deleted", "Gone", calendar.NotFound, calendar.NotFound, false},
		{412, "global", "conditionNotMet", "Precondition Failed", calendar.Conflict, calendar.Conflict, false},
		{429, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", calendar.RateLimit, calendar.RateLimit, false},
		{500, "global", "backendError", "Backend Error", calendar.Transient, calendar.Transient, true},
		{503, "", "", "", calendar.Transient, calendar.Transient, true},
	} {
		t.Run(fmt.Sprint(tc.status, tc.why), func(t *testing.T) {
			f := newFake(t)
			c := f.open(t, nil)
			f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					return false
				}
				w.Header().Set("Retry-After", "7")
				refuse(w, tc.status, tc.domain, tc.why, tc.message)
				return true
			})
			for _, details := range []bool{false, true} {
				_, err := c.Busy(t.Context(), ask(details))
				if e, ok := err.(*calendar.Error); !ok || e.Kind != tc.busy || e.RetryAfter != 7*time.Second || e.Unsure || strings.Contains(err.Error(), "access-") {
					t.Errorf("busy: %v", err)
				}
			}
			_, _, err := c.Create(t.Context(), calendartest.Draft("Tea", 1))
			if e, ok := err.(*calendar.Error); !ok || e.Kind != tc.create || e.Unsure != tc.unsure {
				t.Errorf("create: %v", err)
			}
		})
	}
}

// TestFreeBusyErrors: a calendar that cannot be read is not free.
func TestFreeBusyErrors(t *testing.T) {
	f := newFake(t)
	c := f.open(t, func(o *Options) { o.Calendars[calendar.Team] = "gone@example.com" })
	q := ask(false)
	q.Calendar = calendar.Team
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("got %v", err)
	}
	for why, want := range map[string]calendar.Kind{"internalError": calendar.Transient, "tooManyCalendarsRequested": calendar.Permanent} {
		f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				return false
			}
			answer(w, map[string]any{"calendars": map[string]any{"x": map[string]any{"errors": []reason{{Reason: why}}}}})
			return true
		})
		if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != want || err == nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool { answer(w, map[string]any{}); return true })
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.Permanent {
		t.Errorf("no calendar in the answer: %v", err)
	}
}

// TestMeetings: Google's own link, one that takes its time, and the desk's where the
// account has none.
func TestMeetings(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	d := calendartest.Draft("Tea", 1)
	d.Meeting, d.MeetingURL = true, "https://meet.example.com/x"
	if e, _, err := c.Create(t.Context(), d); err != nil || !strings.HasPrefix(e.MeetingURL, "https://meet.google.com/") {
		t.Errorf("%q %v", e.MeetingURL, err)
	}
	f.pending = true
	d.Key = calendartest.Draft("Tea", 2).Key
	if e, _, err := c.Create(t.Context(), d); err != nil || e.MeetingURL != "" || !e.MeetingPending {
		t.Errorf("%+v %v", e, err)
	}
	f.meetings = false
	d.Key = calendartest.Draft("Tea", 3).Key
	if e, created, err := c.Create(t.Context(), d); err != nil || !created || e.MeetingURL != "https://meet.example.com/x" {
		t.Errorf("%+v %v", e, err)
	}
	d.Key, d.MeetingURL = calendartest.Draft("Tea", 4).Key, ""
	if e, created, err := c.Create(t.Context(), d); err != nil || !created || e.MeetingURL != "" {
		t.Errorf("%+v %v", e, err)
	}
}

// TestDeletedBefore: Google keeps the ids of deleted events.
func TestDeletedBefore(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	d := calendartest.Draft("Tea", 1)
	if _, _, err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.calendars["primary"][0].Status = "cancelled"
	f.mu.Unlock()
	_, _, err := c.Create(t.Context(), d)
	if e, ok := err.(*calendar.Error); !ok || e.Kind != calendar.Conflict || !strings.Contains(e.Message, "deleted") {
		t.Errorf("got %v", err)
	}
}

// TestTheAnswerIsLost: the event is made and the answer never comes; the second try
// finds it.
func TestTheAnswerIsLost(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	lost := false
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
		if lost || r.Method != http.MethodPost || r.URL.Path == "/token" {
			return false
		}
		lost = true
		f.insert(discard{}, r, "primary")
		panic(http.ErrAbortHandler)
	})
	d := calendartest.Draft("Tea", 1)
	_, _, err := c.Create(t.Context(), d)
	if e, ok := err.(*calendar.Error); !ok || e.Kind != calendar.Transient || !e.Unsure || strings.Contains(err.Error(), f.url) {
		t.Fatalf("got %v", err)
	}
	if e, created, err := c.Create(t.Context(), d); err != nil || created || e.ID != d.Key {
		t.Errorf("%+v %t %v", e, created, err)
	}
}

// TestAfterALostAnswer: the desk looks the event up by its id. Without a connection, or a
// token, nothing was sent, and that is said.
func TestAfterALostAnswer(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	landed := true
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path == "/token" {
			return false
		}
		if landed {
			f.insert(discard{}, r, "primary")
		}
		panic(http.ErrAbortHandler)
	})
	desk := calendar.NewScheduler(c, calendar.SchedulerOptions{})
	d := calendartest.Draft("Tea", 1)
	if made, err := desk.Create(t.Context(), d); err != nil || !made.LookedUp || made.Event.ID != d.Key {
		t.Errorf("%+v %v", made, err)
	}
	landed = false
	var e *calendar.Error
	if _, err := desk.Create(t.Context(), calendartest.Draft("Cake", 1)); !errors.As(err, &e) || e.Kind != calendar.Transient || e.Unsure || !strings.Contains(e.Message, "not in the calendar") {
		t.Errorf("%v", err)
	}
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			return false
		}
		panic(http.ErrAbortHandler)
	})
	if _, _, err := f.open(t, nil).Create(t.Context(), d); !errors.As(err, &e) || e.Kind != calendar.Transient || e.Unsure {
		t.Errorf("no token: %v", err)
	}
	f.stop()
	c.Close() // so that no connection of before is tried
	if _, _, err := c.Create(t.Context(), d); !errors.As(err, &e) || e.Kind != calendar.Transient || e.Unsure {
		t.Errorf("refused: %v", err)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// TestSlow: a token, and an answer, that do not come are given up with the context.
func TestSlow(t *testing.T) {
	for _, path := range []string{"/token", "/calendar/v3/freeBusy"} {
		f := newFake(t)
		c := f.open(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		f.meddle(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
			cancel()
			<-r.Context().Done()
			return true
		})
		if _, err := c.Busy(ctx, ask(false)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestRedirected: a token goes nowhere but to the API.
func TestRedirected(t *testing.T) {
	f := newFake(t)
	c := f.open(t, nil)
	f.meddle(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/calendar/v3/freeBusy" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	if _, err := c.Busy(t.Context(), ask(false)); calendar.KindOf(err) != calendar.Permanent {
		t.Errorf("got %v", err)
	}
	if slices.ContainsFunc(f.log, func(s string) bool { return strings.Contains(s, "elsewhere") }) {
		t.Errorf("asked %v", f.log)
	}
}

func TestAway(t *testing.T) {
	f := newFake(t)
	c := f.open(t, func(o *Options) {
		o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) { return nil, errors.New("no route to host") })
	})
	if _, err := c.Busy(t.Context(), ask(false)); calendar.KindOf(err) != calendar.Transient || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzAnswers: whatever Google says is read or refused.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"items":[{"id":"x","start":{"date":"2026-11-23"},"end":{"dateTime":"2026-11-23T10:00:00+01:00"},"conferenceData":{"createRequest":{"status":{"statusCode":"pending"}}}}],"timeZone":"Europe/Berlin"}`), 200)
	f.Add([]byte(`{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`), 403)
	f.Add([]byte(`{"calendars":{"primary":{"busy":[{"start":"2026-11-23T10:00:00Z","end":"2026-11-23T11:00:00Z"}],"errors":[]}}}`), 200)
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		status = 200 + (status%400+400)%400
		c := &Client{options: Options{Zone: time.UTC, Now: time.Now}, base: "https://x", tokens: &tokens{fetching: make(chan struct{}, 1)}}
		c.tokens.source = func(context.Context) oauth2.TokenSource { return oauth2.StaticTokenSource(newToken()) }
		c.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}, Body: body(data), Request: r}, nil
		}), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for _, details := range []bool{false, true} {
			_, err := c.Busy(t.Context(), ask(details))
			if _, ok := err.(*calendar.Error); err != nil && !ok {
				t.Errorf("%T %v", err, err)
			}
		}
	})
}
