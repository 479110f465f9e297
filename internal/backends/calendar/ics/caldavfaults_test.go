package ics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

// TestFaultsOfCreating: a real server behind a proxy that breaks. Whatever happens to the
// request, what is told of the event is true, and asking again makes it once.
func TestFaultsOfCreating(t *testing.T) {
	r := startRadicale(t)
	lose := func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
		proxy.ServeHTTP(httptest.NewRecorder(), request)
	}
	abort := func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
	status := func(code int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(code) }
	}
	type fault = func(http.ResponseWriter, *http.Request, http.Handler)
	both := func(first, then fault) fault {
		return func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
			first(w, request, proxy)
			then(w, request, proxy)
		}
	}
	for name, tc := range map[string]struct {
		put, get fault // nil: as it should be
		made     bool
		kind     calendar.Kind
		unsure   bool
	}{
		"reset before it is done":   {put: abort, kind: calendar.Transient},
		"reset after it is done":    {put: both(lose, abort), made: true},
		"a proxy fails before":      {put: status(502), kind: calendar.Transient},
		"a proxy fails after":       {put: both(lose, status(504)), made: true},
		"a page in between":         {put: status(200), kind: calendar.Transient},
		"done, and said otherwise":  {put: both(lose, status(200)), made: true},
		"reset, and away":           {put: abort, get: abort, kind: calendar.Transient, unsure: true},
		"done, and away":            {put: both(lose, abort), get: status(503), kind: calendar.Transient, unsure: true},
		"reset, and not let in":     {put: abort, get: status(403), kind: calendar.Conflict, unsure: true},
		"refused":                   {put: status(403), kind: calendar.Auth},
		"nothing but another thing": {put: status(507), kind: calendar.Permanent},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			srv := r.front(t, func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
				fault := map[string]func(http.ResponseWriter, *http.Request, http.Handler){http.MethodPut: tc.put, http.MethodGet: tc.get}[request.Method]
				if fault == nil || !broken.Load() {
					proxy.ServeHTTP(w, request)
					return
				}
				fault(w, request, proxy)
			})
			desk := calendar.NewScheduler(r.open(t, r.newUser(t), func(o *CalDAVOptions) { o.URL = srv.URL }), calendar.SchedulerOptions{})
			d := calendartest.Draft("Tea", 1)
			made, err := desk.Create(t.Context(), d)
			e, _ := errors.AsType[*calendar.Error](err)
			switch {
			case tc.made && (err != nil || !made.LookedUp || made.Event.ID != d.Key):
				t.Errorf("%+v %v", made, err)
			case !tc.made && (e == nil || e.Kind != tc.kind || e.Unsure != tc.unsure || strings.Contains(err.Error(), srv.URL)):
				t.Errorf("%v", err)
			}
			broken.Store(false)
			if _, err := desk.Create(t.Context(), d); err != nil {
				t.Errorf("again: %v", err)
			}
			found, err := desk.Availability(t.Context(), calendar.Request{From: d.Start, To: d.End, Details: true})
			if err != nil || len(found.Events) != 1 {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
}

// TestWhatNeverLeft: without a connection nothing was made, and that is said.
func TestWhatNeverLeft(t *testing.T) {
	r := startRadicale(t)
	c := r.open(t, r.newUser(t), nil)
	if _, _, err := c.Create(t.Context(), calendartest.Draft("Tea", 1)); err != nil {
		t.Fatal(err)
	}
	c.Close() // so that no connection of before is tried
	r.stop()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	noTLS := openCalDAV(t, CalDAVOptions{URL: strings.Replace(plain.URL, "http:", "https:", 1), Calendars: map[calendar.Name]string{calendar.Primary: "/cal/"}})
	for name, c := range map[string]*CalDAV{"refused": c, "not TLS": noTLS} {
		_, _, err := c.Create(t.Context(), calendartest.Draft("Cake", 1))
		if e, ok := errors.AsType[*calendar.Error](err); !ok || e.Kind != calendar.Transient || e.Unsure {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheTimeIsUp: what was sent before may be there, what was not is not.
func TestTheTimeIsUp(t *testing.T) {
	asked, released := make(chan struct{}, 1), make(chan struct{}) // from the server to the test, and back; the test closes released
	c := serve(t, func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-released })
	defer close(released)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with the call
		<-asked
		cancel()
	}()
	_, _, err := c.Create(ctx, calendartest.Draft("Tea", 1))
	if e, ok := errors.AsType[*calendar.Error](err); !ok || e.Kind != calendar.Transient || !e.Unsure || !errors.Is(err, context.Canceled) {
		t.Errorf("while it is asked: %v", err)
	}
	_, _, err = c.Create(ctx, calendartest.Draft("Cake", 1))
	if e, ok := errors.AsType[*calendar.Error](err); !ok || e.Unsure || !errors.Is(err, context.Canceled) {
		t.Errorf("before it is asked: %v", err)
	}
}
