package ics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-webdav/caldav"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

const server calendar.Service = "The calendar server"

const (
	maxRedirects = 5 // bounds the redirects of a request, maxComplaint the body of an error in bytes
	maxComplaint = 4 << 10
)

// The bounds of an answer with events, and of a discovery, which the library reads as a tree.
var (
	eventLimits = bounded.Limits{
		Service: "the calendar server", Format: bounded.XML, Bytes: 16 << 20, Piece: maxObject, Depth: 32,
		Idle: 30 * time.Second, Whole: 2 * time.Minute,
	}
	treeLimits = bounded.Limits{
		Service: "the calendar server", Format: bounded.XML, Bytes: 2 << 20, Elements: 20_000, Depth: 32,
		Idle: 30 * time.Second, Whole: time.Minute,
	}
)

var (
	errRedirects = errors.New("caldav: redirected too often")
	errElsewhere = errors.New("caldav: redirected to another host")
)

type wire struct {
	client         *http.Client // within eventLimits
	finder         *http.Client // within treeLimits
	user, password string
	now            func() time.Time
}

// Do implements webdav.HTTPClient for discoveries. A failed request is an error.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.sendBy(w.finder, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	return nil, w.refusal(resp)
}

// send sends a request and follows redirects with its method. If the context has ended, the error wraps the context's.
func (w *wire) send(r *http.Request) (*http.Response, error) { return w.sendBy(w.client, r) }

func (w *wire) sendBy(client *http.Client, r *http.Request) (*http.Response, error) {
	for range maxRedirects + 1 {
		if w.user != "" {
			r.SetBasicAuth(w.user, w.password)
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil, server.Unanswered(r.Context(), err)
		}
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		drain(resp)
		if r, err = redirected(r, resp); err != nil {
			return nil, calendar.Errorf(calendar.Permanent, err, "The calendar server's address has changed.")
		}
	}
	return nil, calendar.Errorf(calendar.Permanent, errRedirects, "The calendar server redirects too often.")
}

func redirected(r *http.Request, resp *http.Response) (*http.Request, error) {
	to, err := resp.Location()
	if err != nil {
		return nil, err
	}
	if !sameHost(r.URL, to) {
		return nil, fmt.Errorf("%w: %s", errElsewhere, to.Host)
	}
	next := r.Clone(r.Context())
	next.URL, next.Host = to, ""
	if r.GetBody != nil {
		if next.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// sameHost reports whether b may get the requests for a: it has the same host and port, or the same host with TLS.
func sameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return a.Scheme == b.Scheme && port(a) == port(b) || a.Scheme == "http" && b.Scheme == "https"
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// drain reads the short rest of a body, so that the client can reuse the connection.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxComplaint)
	_ = resp.Body.Close()
}

func readObject(ctx context.Context, resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxObject+1))
	_ = resp.Body.Close()
	if err := server.BrokenOff(ctx, err); err != nil {
		return nil, err
	}
	if len(data) > maxObject {
		return nil, calendar.Errorf(calendar.Permanent, errTooLong, "The event is too large to read.")
	}
	return data, nil
}

const maxObject = 2 << 20 // bounds one calendar object in bytes. Limits.Piece bounds only XML.

const maxObjectParts = 20_000 // bounds the lines of one object, an event with its changed occurrences

// maxLines bounds the lines of all objects in an answer, because decoding a line takes about a microsecond.
const maxLines = 1_000_000

var errTooLong = fmt.Errorf("caldav: an event has more than %d bytes", maxObject)

func (w *wire) refusal(resp *http.Response) *calendar.Error {
	complaint, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))
	drain(resp)
	cause := fmt.Errorf("%s answers %s", resp.Request.Method, resp.Status)
	e := func(kind calendar.Kind, message string) *calendar.Error {
		out := calendar.Errorf(kind, cause, "%s", message)
		out.RetryAfter = bounded.RetryAfter(resp.Header, w.now())
		return out
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return e(calendar.Auth, "The calendar server does not accept the user and password.")
	case strings.Contains(string(complaint), "no-uid-conflict"): // RFC 4791 section 5.3.2.1
		return e(calendar.Conflict, "The calendar already has this event under another name.")
	case code == http.StatusForbidden:
		return e(calendar.Auth, "The calendar server does not permit the request.")
	case code == http.StatusNotFound, code == http.StatusGone, code == http.StatusConflict:
		return e(calendar.NotFound, "The calendar is not on the server.")
	case code == http.StatusTooManyRequests:
		return e(calendar.RateLimit, "The calendar server gets too many requests.")
	case code == http.StatusPreconditionFailed:
		return e(calendar.Conflict, calendar.Occupied)
	case code == http.StatusInsufficientStorage:
		return e(calendar.Permanent, "The calendar is full.")
	case code == http.StatusLocked, code == http.StatusRequestTimeout, code >= 500 && code != http.StatusNotImplemented:
		return e(calendar.Transient, "The calendar server does not work at the moment.")
	default:
		return e(calendar.Permanent, "The calendar server refuses the request.")
	}
}

type found struct {
	path, name string
}

var (
	errNothingFound = errors.New("caldav: the server names no calendars for this user")
	errNoPrincipal  = errors.New("caldav: the server names no principal")
)

// pathOf returns the path of a name's calendar. The first goroutine that needs the server's calendars discovers them,
// while others wait.
func (c *CalDAV) pathOf(ctx context.Context, name calendar.Name) (string, error) {
	want := c.options.Calendars[name]
	if want == "" && name != calendar.Primary {
		return "", calendar.NoCalendar(name)
	}
	if p, ok, err := c.direct(want); ok || err != nil {
		return p, err
	}
	select {
	case c.discovering <- struct{}{}:
		defer func() { <-c.discovering }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	all := c.calendars.Load()
	if all == nil {
		discovered, err := c.discover(ctx)
		if err != nil {
			return "", err
		}
		all = &discovered
		c.calendars.Store(all)
	}
	if want == "" {
		return (*all)[0].path, nil
	}
	for _, f := range *all {
		if strings.EqualFold(f.name, want) || path.Base(f.path) == want {
			return f.path, nil
		}
	}
	return "", calendar.Errorf(calendar.NotFound, fmt.Errorf("the server has no calendar %q", want), "There is no %s calendar.", name)
}

// direct returns the path of a calendar whose path or URL is configured.
func (c *CalDAV) direct(want string) (string, bool, error) {
	u, err := url.Parse(want)
	switch {
	case err != nil || u.Host == "" && !strings.HasPrefix(want, "/"):
		return "", false, nil
	case u.Host == "":
		return u.Path, true, nil
	}
	if !sameHost(c.base, u) || c.base.Scheme != u.Scheme {
		return "", false, calendar.Errorf(calendar.Permanent,
			fmt.Errorf("%w: %s is not %s", errElsewhere, u.Host, c.base.Host), "The calendar is on another server.")
	}
	return u.Path, true, nil
}

// discover returns the user's calendars, sorted by path. It starts at the configured address, then at
// /.well-known/caldav (RFC 6764 section 5).
func (c *CalDAV) discover(ctx context.Context) ([]found, error) {
	var last error
	for _, address := range []string{c.base.String(), c.base.ResolveReference(&url.URL{Path: "/.well-known/caldav"}).String()} {
		all, err := c.discoverAt(ctx, address)
		if err == nil {
			return all, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if over, ok := bounded.As(err); ok { // the library has read the body
			err = server.TooMuch(over)
		}
		switch e, ok := errors.AsType[*calendar.Error](err); {
		case ok && e.Kind != calendar.NotFound && e.Kind != calendar.Permanent:
			return nil, e // the other address would give the same error
		case ok:
			last = cmp.Or(last, err)
		default: // the server there does not speak CalDAV
			last = cmp.Or[error](last, calendar.Errorf(calendar.Permanent, err,
				"There is no calendar server at the configured address."))
		}
	}
	return nil, last
}

func (c *CalDAV) discoverAt(ctx context.Context, address string) ([]found, error) {
	client, err := caldav.NewClient(c.wire, address)
	if err != nil {
		return nil, err
	}
	principal, err := client.FindCurrentUserPrincipal(ctx)
	if err != nil {
		return nil, err
	}
	if principal == "" {
		return nil, calendar.Errorf(calendar.Auth, errNoPrincipal, "The calendar server does not know the user.")
	}
	home, err := client.FindCalendarHomeSet(ctx, principal)
	if err != nil {
		return nil, err
	}
	calendars, err := client.FindCalendars(ctx, home)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, one := range calendars {
		if len(one.SupportedComponentSet) == 0 || slices.Contains(one.SupportedComponentSet, "VEVENT") {
			all = append(all, found{one.Path, one.Name})
		}
	}
	if len(all) == 0 {
		return nil, calendar.Errorf(calendar.NotFound, errNothingFound, "There is no calendar on the server.")
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return all, nil
}
