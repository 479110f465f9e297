// Package google uses Google Calendar, by the REST interface of Calendar API v3
// (developers.google.com/workspace/calendar/api/v3/reference, read 2026-11-20): freeBusy.query for times alone,
// events.list with singleEvents for details, events.insert with the event's key as id and with conferenceData.
//
// It acts as a user who has authorized it, or as a service account, which sees the calendars that are shared with it
// or, by domain-wide delegation, a user's.
package google

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

// DefaultBaseURL is the address of the API.
const DefaultBaseURL = "https://www.googleapis.com/calendar/v3"

const (
	// pageSize is the number of events in a page; maxPages bounds the number of pages.
	pageSize, maxPages = 100, 50
)

// Options configure a Client.
type Options struct {
	Credentials []byte // the JSON of a service account's key or of an authorized user
	Subject     string // the user of a service account, by domain-wide delegation; empty means the account itself
	// Calendars map names to ids. Without an entry, Primary is "primary" and the others do not exist.
	Calendars map[calendar.Name]string
	BaseURL   string            // the address of the API; empty means DefaultBaseURL
	Zone      *time.Location    // for days if Google's answer has no zone; nil means UTC
	Transport http.RoundTripper // sends requests, within the bounds of docs/configuration.md; nil means a new one
	Now       func() time.Time  // the clock; nil means time.Now
}

// Client is a [calendar.Calendar] at Google. The caller must close it.
type Client struct {
	// Fixed after New.
	options Options
	base    string
	http    *http.Client
	tokens  *tokens
}

// New makes a Client. It sends no request.
func New(o Options) (*Client, error) {
	o.BaseURL = strings.TrimSuffix(cmp.Or(o.BaseURL, DefaultBaseURL), "/")
	if !secure(o.BaseURL) {
		return nil, errors.New("google: the base URL must begin with https://")
	}
	o.Zone = cmp.Or(o.Zone, time.UTC)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = bounded.NewTransport()
	}
	t, err := newTokens(o.Credentials, o.Subject, bounded.Wrap(o.Transport, tokenLimits))
	if err != nil {
		return nil, err
	}
	return &Client{options: o, base: o.BaseURL, tokens: t, http: bounded.Over(o.Transport, limits)}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) idOf(name calendar.Name) (string, error) {
	id := c.options.Calendars[name]
	if id == "" && name == calendar.Primary {
		id = "primary"
	}
	if id == "" {
		return "", calendar.NoCalendar(name)
	}
	return id, nil
}

// Busy implements [calendar.Calendar].
func (c *Client) Busy(ctx context.Context, q calendar.Query) (calendar.Found, error) {
	id, err := c.idOf(q.Calendar)
	if err != nil {
		return calendar.Found{}, err
	}
	if q.Details {
		return c.list(ctx, id, q)
	}
	return c.freeBusy(ctx, id, q)
}

func (c *Client) freeBusy(ctx context.Context, id string, q calendar.Query) (calendar.Found, error) {
	ask := map[string]any{"timeMin": stamp(q.From), "timeMax": stamp(q.To), "items": []map[string]string{{"id": id}}}
	var answer freeBusyResponse
	if err := c.call(ctx, http.MethodPost, "/freeBusy", nil, ask, &answer); err != nil {
		return calendar.Found{}, err
	}
	if len(answer.Calendars) != 1 {
		return calendar.Found{}, server.Malformed(calendar.Permanent,
			fmt.Errorf("freeBusy.query answers with %d calendars", len(answer.Calendars)))
	}
	var found calendar.Found
	for _, one := range answer.Calendars { // under the requested name
		for _, r := range one.Errors {
			return calendar.Found{}, freeBusyError(r)
		}
		for _, b := range one.Busy {
			found.Events = append(found.Events, calendar.Event{Start: b.Start.UTC(), End: b.End.UTC()})
		}
	}
	return found, nil
}

func freeBusyError(r reason) error {
	cause := fmt.Errorf("freeBusy.query says %.60q", r.Reason)
	switch r.Reason {
	case "notFound":
		return calendar.Errorf(calendar.NotFound, cause, "There is no such calendar, or it is not shared with this service.")
	case "internalError", "backendError":
		return calendar.Errorf(calendar.Transient, cause, "Google does not work at the moment.")
	default:
		return calendar.Errorf(calendar.Permanent, cause, "The calendar cannot be read.")
	}
}

var errTooMany = fmt.Errorf("google: there are more than %d events", maxPages*pageSize)

func (c *Client) list(ctx context.Context, id string, q calendar.Query) (calendar.Found, error) {
	params := url.Values{
		"timeMin": {stamp(q.From)}, "timeMax": {stamp(q.To)}, "singleEvents": {"true"}, "orderBy": {"startTime"},
		"maxResults": {fmt.Sprint(pageSize)}, "maxAttendees": {fmt.Sprint(calendar.EventAttendees)},
	}
	var found calendar.Found
	for range maxPages {
		var page eventList
		if err := c.call(ctx, http.MethodGet, "/calendars/"+url.PathEscape(id)+"/events", params, nil, &page); err != nil {
			return calendar.Found{}, err
		}
		zone := c.options.Zone
		if named, err := time.LoadLocation(page.TimeZone); err == nil && page.TimeZone != "" && page.TimeZone != "Local" {
			zone = named
		}
		for _, e := range page.Items {
			if !e.isBusy() {
				continue
			}
			one, err := e.event(zone)
			if err != nil {
				found.Unread = append(found.Unread, calendar.Unread{ID: e.ID, Err: err})
				continue
			}
			if (calendar.Period{Start: one.Start, End: one.End}).Overlaps(calendar.Period{Start: q.From, End: q.To}) {
				found.Events = append(found.Events, one)
			}
		}
		if page.NextPageToken == "" {
			return found, nil
		}
		params.Set("pageToken", page.NextPageToken)
	}
	found.Unread = append(found.Unread, calendar.Unread{ID: "(more events)", Err: errTooMany})
	return found, nil
}

// Create implements [calendar.Calendar]. The event's key is its id at Google, so Google makes it once. Google keeps the
// ids of deleted events, so a deleted event is a conflict.
func (c *Client) Create(ctx context.Context, d calendar.Draft) (calendar.Event, bool, error) {
	if err := d.Check(); err != nil {
		return calendar.Event{}, false, err
	}
	id, err := c.idOf(calendar.Primary)
	if err != nil {
		return calendar.Event{}, false, err
	}
	e := event{
		ID: d.Key, Summary: d.Title, Description: d.Description,
		Start: eventTime{DateTime: stamp(d.Start)}, End: eventTime{DateTime: stamp(d.End)},
	}
	for _, a := range d.Attendees {
		e.Attendees = append(e.Attendees, attendee{Email: a})
	}
	if d.Meeting {
		e.Conference = &conferenceData{CreateRequest: &createConference{RequestID: d.Key, Solution: solutionKey{"hangoutsMeet"}}}
	}
	made, err := c.insert(ctx, id, e)
	if d.Meeting && errors.Is(err, errNoConference) {
		e.Conference, e.Location = nil, d.MeetingURL
		made, err = c.insert(ctx, id, e)
	}
	if refused, ok := errors.AsType[*calendar.Error](err); ok && errors.Is(err, errExists) {
		made, found, err := c.find(ctx, id, d.Key)
		if err == nil && !found {
			err = deleted(refused)
		}
		return made, false, err
	}
	return made, err == nil, err
}

func (c *Client) insert(ctx context.Context, id string, e event) (calendar.Event, error) {
	params := url.Values{"conferenceDataVersion": {"1"}, "sendUpdates": {"all"}}
	var made event
	if err := c.call(ctx, http.MethodPost, "/calendars/"+url.PathEscape(id)+"/events", params, e, &made); err != nil {
		return calendar.Event{}, server.Unsure(err, !errors.Is(err, errNotSent) && !bounded.Unsent(err))
	}
	return c.own(made)
}

func deleted(cause error) error {
	return calendar.Errorf(calendar.Conflict, cause,
		"This event was deleted from the calendar, and Google does not accept it again with the same title and time.")
}

// Find implements [calendar.Calendar].
func (c *Client) Find(ctx context.Context, key string) (calendar.Event, bool, error) {
	id, err := c.idOf(calendar.Primary)
	if err != nil {
		return calendar.Event{}, false, err
	}
	return c.find(ctx, id, key)
}

// find reads the event of a key (events.get). A deleted event is a conflict, because Google keeps its id.
func (c *Client) find(ctx context.Context, id, key string) (calendar.Event, bool, error) {
	var there event
	err := c.call(ctx, http.MethodGet, "/calendars/"+url.PathEscape(id)+"/events/"+url.PathEscape(key), nil, nil, &there)
	switch {
	case err != nil && calendar.KindOf(err) == calendar.NotFound:
		return calendar.Event{}, false, nil
	case err != nil:
		return calendar.Event{}, false, err
	case there.Status == "cancelled":
		return calendar.Event{}, false, deleted(nil)
	}
	e, err := c.own(there)
	return e, err == nil, err
}

func (c *Client) own(e event) (calendar.Event, error) {
	out, err := e.event(c.options.Zone)
	if err != nil {
		return out, server.Malformed(calendar.Permanent, err)
	}
	out.Calendar, out.Invitations = calendar.Primary, calendar.InvitationsNone
	if len(out.Attendees) > 0 {
		out.Invitations = calendar.InvitationsSent
	}
	return out, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func isLink(s string) bool {
	return !strings.ContainsAny(s, " \n\t") && (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://"))
}
