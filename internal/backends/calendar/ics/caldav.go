package ics

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-ical"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

// CalDAVOptions configure a CalDAV.
type CalDAVOptions struct {
	URL string // the address of the server, or of anything on it that belongs to the user
	// User and Password are for basic authentication; empty means none.
	User, Password string
	// Calendars map names to calendars on the server: by their name there, the last part of their path, their path, or
	// their URL. Without an entry, Primary is the first calendar and the others do not exist.
	Calendars map[calendar.Name]string
	Zone      *time.Location    // for days and for times without a zone; nil means UTC
	Email     string            // the owner's, the organizer of created events. Without it, the server sends no invitations.
	Transport http.RoundTripper // sends requests, within the bounds of docs/configuration.md; nil means a new one
	Now       func() time.Time  // the clock; nil means time.Now
}

// CalDAV is a [calendar.Calendar] on a CalDAV server (RFC 4791), such as Radicale, Nextcloud or Fastmail. It finds a
// user's calendars from one address (RFC 6764). It expands recurring events itself, because servers expand them
// differently. It creates an event under its key with If-None-Match, so any number of attempts make one event.
//
// It follows redirects only within the server's host, so that no other host gets the password. If the calendars are on
// another host, configure that host's address. The caller must close it.
type CalDAV struct {
	// Fixed after New.
	options     CalDAVOptions
	base        *url.URL
	wire        *wire
	reader      reader
	discovering chan struct{}           // a lock around the discovery of calendars; it is never closed
	calendars   atomic.Pointer[[]found] // nil before the discovery
}

// NewCalDAV makes a CalDAV. It sends no request.
func NewCalDAV(o CalDAVOptions) (*CalDAV, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, fmt.Errorf("caldav: the server's address must be an http or https URL without a user and password")
	}
	base.Path = cmp.Or(base.Path, "/")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = bounded.NewTransport()
	}
	return &CalDAV{
		options: o, base: base, reader: reader{Zone: o.Zone, Email: o.Email, MaxParts: maxObjectParts}, discovering: make(chan struct{}, 1),
		wire: &wire{
			user: o.User, password: o.Password, now: o.Now,
			client: bounded.Unfollowed(bounded.Wrap(o.Transport, eventLimits)),
			finder: bounded.Unfollowed(bounded.Wrap(o.Transport, treeLimits)),
		},
	}, nil
}

// Close closes idle connections.
func (c *CalDAV) Close() { c.wire.client.CloseIdleConnections() }

// zoneSlack extends a query, because a server may use another zone for days and for times without a zone.
const zoneSlack = 26 * time.Hour

// Busy implements [calendar.Calendar].
func (c *CalDAV) Busy(ctx context.Context, q calendar.Query) (calendar.Found, error) {
	path, err := c.pathOf(ctx, q.Calendar)
	if err != nil {
		return calendar.Found{}, err
	}
	r, err := c.request(ctx, "REPORT", path, []byte(queryFor(q.From.Add(-zoneSlack), q.To.Add(zoneSlack))))
	if err != nil {
		return calendar.Found{}, err
	}
	r.Header.Set("Content-Type", "application/xml; charset=utf-8")
	r.Header.Set("Depth", "1")
	resp, err := c.wire.send(r)
	if err != nil {
		return calendar.Found{}, err
	}
	if resp.StatusCode != http.StatusMultiStatus {
		return calendar.Found{}, c.gone(c.wire.refusal(resp))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	return c.read(ctx, resp.Body, q)
}

// gone drops the discovered calendars if one of them no longer exists.
func (c *CalDAV) gone(e *calendar.Error) *calendar.Error {
	if e.Kind == calendar.NotFound {
		c.calendars.Store(nil)
	}
	return e
}

// read reads the events of an answer. It holds one calendar object at a time.
func (c *CalDAV) read(ctx context.Context, answer io.Reader, q calendar.Query) (calendar.Found, error) {
	var all calendar.Found
	lines := 0
	err := eachObject(answer, func(o object) error {
		if lines += strings.Count(o.data, "\n"); lines > maxLines {
			return calendar.TooLarge(fmt.Errorf("the answer has more than %d lines", maxLines))
		}
		if o.err != nil {
			all.Unread = append(all.Unread, calendar.Unread{ID: o.href, Err: o.err})
			return ctx.Err()
		}
		one, err := c.reader.Busy(ctx, []byte(o.data), q.From, q.To)
		if err != nil {
			all.Unread = append(all.Unread, calendar.Unread{ID: o.href, Err: err})
			return ctx.Err()
		}
		for i := range one.Events {
			one.Events[i].Version = o.etag
		}
		all.Events = append(all.Events, one.Events...)
		all.Unread = append(all.Unread, one.Unread...)
		if len(all.Events)+len(all.Unread) > maxEvents {
			return calendar.TooLarge(errTooMany)
		}
		return ctx.Err()
	})
	_, malformed := errors.AsType[*xml.SyntaxError](err)
	own, isOwn := errors.AsType[*calendar.Error](err)
	switch {
	case err == nil:
		return all, nil
	case isOwn:
		return calendar.Found{}, own
	case malformed || errors.Is(err, errMalformed):
		return calendar.Found{}, server.Malformed(calendar.Permanent, err)
	default:
		return calendar.Found{}, server.BrokenOff(ctx, err)
	}
}

// Create implements [calendar.Calendar]. The event's key is its UID and its name on the server.
func (c *CalDAV) Create(ctx context.Context, d calendar.Draft) (calendar.Event, bool, error) {
	data, err := write(d, c.options.Email)
	if err != nil {
		return calendar.Event{}, false, err
	}
	path, err := c.pathOfEvent(ctx, d.Key)
	if err != nil {
		return calendar.Event{}, false, err
	}
	r, err := c.request(ctx, http.MethodPut, path, data)
	if err != nil {
		return calendar.Event{}, false, err
	}
	r.Header.Set("Content-Type", ical.MIMEType+"; charset=utf-8")
	r.Header.Set("If-None-Match", "*")
	resp, err := c.wire.send(r)
	if err != nil {
		return calendar.Event{}, false, server.Unsure(err, !bounded.Unsent(err))
	}
	switch {
	case resp.StatusCode == http.StatusPreconditionFailed:
		drain(resp)
		e, err := c.existing(ctx, path, d.Key)
		return e, false, err
	case resp.StatusCode >= 300:
		e := c.gone(c.wire.refusal(resp))
		e.Unsure = e.Kind == calendar.Transient
		return calendar.Event{}, false, e
	case resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusNoContent:
		// A server answers 201 to a creation (RFC 9110 section 9.3.4), some answer 204. Another status may be from a
		// proxy.
		drain(resp)
		e := calendar.Errorf(calendar.Transient, nil, "The calendar server did not confirm the event (status %d).", resp.StatusCode)
		e.Unsure = true
		return calendar.Event{}, false, e
	}
	etag := resp.Header.Get("ETag")
	drain(resp)
	e, err := c.event(data, etag)
	return e, err == nil, err
}

// Find implements [calendar.Calendar].
func (c *CalDAV) Find(ctx context.Context, key string) (calendar.Event, bool, error) {
	path, err := c.pathOfEvent(ctx, key)
	if err != nil {
		return calendar.Event{}, false, err
	}
	e, err := c.existing(ctx, path, key)
	if errors.Is(err, errGone) {
		return calendar.Event{}, false, nil
	}
	return e, err == nil, err
}

func (c *CalDAV) pathOfEvent(ctx context.Context, key string) (string, error) {
	folder, err := c.pathOf(ctx, calendar.Primary)
	return strings.TrimSuffix(folder, "/") + "/" + key + "." + ical.Extension, err
}

var errGone = errors.New("caldav: the event does not exist")

func (c *CalDAV) existing(ctx context.Context, path, key string) (calendar.Event, error) {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return calendar.Event{}, err
	}
	r.Header.Set("Accept", ical.MIMEType)
	resp, err := c.wire.send(r)
	if err != nil {
		return calendar.Event{}, err
	}
	if resp.StatusCode >= 300 {
		e := c.wire.refusal(resp)
		if e.Kind == calendar.NotFound { // in Create, the event has just been removed
			e.Kind, e.Err = calendar.Transient, fmt.Errorf("%w: %w", errGone, e.Err)
		}
		return calendar.Event{}, e
	}
	etag := resp.Header.Get("ETag")
	data, err := readObject(ctx, resp)
	if err != nil {
		return calendar.Event{}, err
	}
	e, err := c.event(data, etag)
	if err != nil || e.ID != key {
		return calendar.Event{}, calendar.Errorf(calendar.Conflict, err, calendar.Occupied)
	}
	return e, nil
}

func (c *CalDAV) event(data []byte, etag string) (calendar.Event, error) {
	invitations := calendar.InvitationsNotSent
	if c.options.Email != "" {
		invitations = calendar.InvitationsByServer
	}
	e, err := c.reader.First(data, invitations)
	e.Version = etag
	return e, err
}

func (c *CalDAV) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	u := *c.base
	u.Path, u.RawPath, u.RawQuery = path, "", ""
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, calendar.Errorf(calendar.Permanent, err, "The calendar's address cannot be used.")
	}
	return r, nil
}

// query is a calendar-query REPORT (RFC 4791 section 7.8) for the events of a range. Its times need no escaping.
const query = `<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>` +
	`<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="%s" ` +
	`end="%s"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>`

const utcForm = "20060102T150405Z"

var first = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) // the earliest time of a query: servers refuse earlier years

func queryFor(from, to time.Time) string {
	if from.Before(first) {
		from = first
	}
	return fmt.Sprintf(query, from.UTC().Format(utcForm), to.UTC().Format(utcForm))
}

// response is a part of a multistatus answer (RFC 4918 section 14.16).
type response struct {
	Href   string  `xml:"DAV: href"`
	Status string  `xml:"DAV: status"`
	Props  []props `xml:"DAV: propstat"`
}

type props struct {
	Status string `xml:"DAV: status"`
	Prop   struct {
		ETag string `xml:"DAV: getetag"`
		Data string `xml:"urn:ietf:params:xml:ns:caldav calendar-data"`
	} `xml:"DAV: prop"`
}

type object struct {
	href, etag string
	data       string // empty if err is set
	err        error
}

var (
	errMalformed = errors.New("caldav: the answer is not a multistatus")
	errNoObject  = errors.New("caldav: the answer has no calendar data of the object")
	errTruncated = errors.New("caldav: the server omitted events because there are too many")
)

// eachObject reads a multistatus and calls f with each calendar object, until the end or an error of f. The error wraps
// errMalformed, or is an error of the reader, of the XML decoder or of f.
func eachObject(answer io.Reader, f func(object) error) error {
	// The decoder gives each response to f and keeps none.
	var multistatus struct {
		XMLName   xml.Name
		Responses responses `xml:"DAV: response"`
	}
	multistatus.Responses = f
	err := xml.NewDecoder(answer).Decode(&multistatus)
	switch name := multistatus.XMLName; {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it is empty", errMalformed)
	case name != xml.Name{} && name != xml.Name{Space: "DAV:", Local: "multistatus"}:
		return fmt.Errorf("%w: it begins with %.60q", errMalformed, name.Local)
	}
	return err
}

type responses func(object) error

// UnmarshalXML implements xml.Unmarshaler for one response.
func (f *responses) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	var r response
	if err := d.DecodeElement(&r, &start); err != nil {
		return err
	}
	if o, ok := r.object(); ok {
		return (*f)(o)
	}
	return nil
}

// object returns the calendar object of a response, or false if the object no longer exists.
func (r *response) object() (object, bool) {
	o := object{href: r.Href, err: errNoObject}
	for _, p := range r.Props {
		if p.Prop.Data != "" && (p.Status == "" || statusOf(p.Status) == "200") {
			o = object{href: r.Href, etag: p.Prop.ETag, data: p.Prop.Data}
		}
	}
	switch status := statusOf(r.Status); {
	case status == "507": // RFC 4791 section 7.8: number-of-matches-within-limits
		o.err = errTruncated
	case status == "404" && o.data == "":
		return object{}, false
	}
	return o, true
}

func statusOf(line string) string {
	if parts := strings.Fields(line); len(parts) > 1 {
		return parts[1]
	}
	return ""
}
