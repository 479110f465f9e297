package ics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

// serve is a server that answers every request alike, and a client of one of its calendars.
func serve(t *testing.T, handler http.HandlerFunc) *CalDAV {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return openCalDAV(t, CalDAVOptions{
		URL: srv.URL, User: "ada", Password: "secret", Calendars: map[calendar.Name]string{calendar.Primary: "/cal/"},
		Now: func() time.Time { return time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC) },
	})
}

var anytime = calendar.Query{Calendar: calendar.Primary, From: time.Unix(1e9, 0), To: time.Unix(1e9+3600, 0)}

// TestRefusals: the meaning of each status, for reading and for creating.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		status       int
		header, body string
		busy, create calendar.Kind
		unsure       bool
		wait         time.Duration
	}{
		{401, "", "", calendar.Auth, calendar.Auth, false, 0},
		{403, "", "", calendar.Auth, calendar.Auth, false, 0},
		{403, "", `<error xmlns="DAV:"><no-uid-conflict xmlns="urn:ietf:params:xml:ns:caldav"/></error>`, calendar.Conflict, calendar.Conflict, false, 0},
		{404, "", "", calendar.NotFound, calendar.NotFound, false, 0},
		{409, "", "", calendar.NotFound, calendar.NotFound, false, 0},
		{400, "", "", calendar.Permanent, calendar.Permanent, false, 0},
		{405, "", "", calendar.Permanent, calendar.Permanent, false, 0},
		{423, "", "", calendar.Transient, calendar.Transient, true, 0},
		{429, "30", "", calendar.RateLimit, calendar.RateLimit, false, 30 * time.Second},
		{429, "Fri, 20 Nov 2026 08:02:00 GMT", "", calendar.RateLimit, calendar.RateLimit, false, 2 * time.Minute},
		{429, "Fri, 20 Nov 2020 08:02:00 GMT", "", calendar.RateLimit, calendar.RateLimit, false, 0},
		{429, "2000000000", "", calendar.RateLimit, calendar.RateLimit, false, 24 * time.Hour},
		{429, "soon", "", calendar.RateLimit, calendar.RateLimit, false, 0},
		{500, "", "", calendar.Transient, calendar.Transient, true, 0},
		{501, "", "", calendar.Permanent, calendar.Permanent, false, 0},
		{503, "5", "", calendar.Transient, calendar.Transient, true, 5 * time.Second},
		{507, "", "", calendar.Permanent, calendar.Permanent, false, 0},
	} {
		t.Run(fmt.Sprint(tc.status, tc.header), func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if user, password, _ := r.BasicAuth(); user != "ada" || password != "secret" {
					t.Errorf("asked by %q", user)
				}
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				http.Error(w, tc.body+" secret-inner", tc.status)
			})
			_, err := c.Busy(t.Context(), anytime)
			e, ok := err.(*calendar.Error)
			if !ok || e.Kind != tc.busy || e.RetryAfter != tc.wait || e.Unsure {
				t.Errorf("busy: %#v", err)
			}
			_, _, err = c.Create(t.Context(), calendartest.Draft("Tea", 1))
			e, ok = err.(*calendar.Error)
			if !ok || e.Kind != tc.create || e.Unsure != tc.unsure || strings.Contains(err.Error(), "secret") {
				t.Errorf("create: %#v", err)
			}
		})
	}
}

// TestSlow: requests end with the context, before an answer and in the middle of one.
func TestSlow(t *testing.T) {
	for name, begin := range map[string]string{"says nothing": "", "stops half way": `<?xml version="1.0"?><multistatus xmlns="DAV:"><response>`} {
		asked, released := make(chan struct{}, 2), make(chan struct{}) // from the server to the test, and back; the test closes released
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if begin != "" {
				w.WriteHeader(http.StatusMultiStatus)
				_, _ = w.Write([]byte(begin))
				_ = http.NewResponseController(w).Flush()
			}
			asked <- struct{}{}
			<-released
		})
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := c.Busy(ctx, anytime); return err },
			func(ctx context.Context) error {
				if begin != "" {
					return context.Canceled // a PUT's answer is not read
				}
				_, _, err := c.Create(ctx, calendartest.Draft("Tea", 1))
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // ends with the call
				select {
				case <-asked:
				case <-ctx.Done():
				}
				cancel()
			}()
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		close(released)
	}
}

// TestInvalidAnswers: no invalid answer means free.
func TestInvalidAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   calendar.Kind
	}{
		"a page":          {200, "<html>Welcome</html>", calendar.Permanent},
		"no XML":          {207, "hello", calendar.Permanent},
		"another element": {207, `<calendar xmlns="DAV:"/>`, calendar.Permanent},
		"endless":         {207, `<multistatus xmlns="DAV:">` + strings.Repeat("<response><href>x</href></response>", 1<<20), calendar.Permanent},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		})
		if _, err := c.Busy(t.Context(), anytime); calendar.KindOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const partly = `<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
<d:response><d:href>/cal/good.ics</d:href><d:propstat><d:prop><d:getetag>"1"</d:getetag><c:calendar-data>BEGIN:VCALENDAR
BEGIN:VEVENT
UID:good
DTSTART:20010909T014700Z
DURATION:PT10M
END:VEVENT
END:VCALENDAR
</c:calendar-data></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>
<d:response><d:href>/cal/bad.ics</d:href><d:propstat><d:prop><c:calendar-data>hello</c:calendar-data></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>
<d:response><d:href>/cal/none.ics</d:href><d:propstat><d:prop><c:calendar-data/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response>
<d:response><d:href>/cal/gone.ics</d:href><d:status>HTTP/1.1 404 Not Found</d:status></d:response>
<d:response><d:href>/cal/</d:href><d:status>HTTP/1.1 507 Insufficient Storage</d:status></d:response>
</d:multistatus>`

// TestPartlyRead: unreadable parts hide nothing and are named, and so is a list cut short by the server.
func TestPartlyRead(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = w.Write([]byte(partly))
	})
	found, err := c.Busy(t.Context(), anytime)
	if err != nil || len(found.Events) != 1 || found.Events[0].ID != "good" || found.Events[0].Version != `"1"` {
		t.Fatalf("%+v %v", found, err)
	}
	var unread []string
	for _, u := range found.Unread {
		unread = append(unread, u.ID)
	}
	if got := strings.Join(unread, " "); got != "/cal/bad.ics /cal/none.ics /cal/" || !errors.Is(found.Unread[2].Err, errTruncated) {
		t.Errorf("unread %+v", found.Unread)
	}
}

// TestNotACalendarServer: the error distinguishes a web server that is not a calendar server from an unknown user.
func TestNotACalendarServer(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   calendar.Kind
	}{
		"a web server": {200, "<html></html>", calendar.Permanent},
		"nothing":      {404, "", calendar.NotFound},
		"no PROPFIND":  {405, "", calendar.Permanent},
		"no user": {207, `<multistatus xmlns="DAV:"><response><href>/</href><propstat><prop><current-user-principal/></prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>`,
			calendar.Auth},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		c := openCalDAV(t, CalDAVOptions{URL: srv.URL})
		if _, err := c.Busy(t.Context(), anytime); calendar.KindOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		srv.Close()
	}
}

func TestAddress(t *testing.T) {
	for _, bad := range []string{"", "dav.example.com", "ftp://dav.example.com", "https://ada:secret@dav.example.com", "https://"} {
		if _, err := NewCalDAV(CalDAVOptions{URL: bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzAnswer: any answer is read or refused.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(partly))
	f.Add([]byte(`<multistatus xmlns="DAV:"><response><href/><status>x</status><propstat/></response></multistatus>`))
	c, err := NewCalDAV(CalDAVOptions{URL: "http://127.0.0.1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := c.read(t.Context(), bytes.NewReader(data), anytime)
		if _, ok := err.(*calendar.Error); err != nil && !ok || len(found.Unread) > len(data) {
			t.Errorf("%+v %v", found, err)
		}
	})
}
