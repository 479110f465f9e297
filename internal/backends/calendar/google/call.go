package google

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

// limits bound an answer: pageSize events with calendar.EventAttendees each.
var limits = bounded.Limits{
	Service: "Google Calendar", Format: bounded.JSON, Bytes: 8 << 20, Elements: 400 * pageSize, Depth: 32,
	Idle: 30 * time.Second, Whole: time.Minute,
}

const server calendar.Service = "Google"

var (
	errExists       = errors.New("the id is taken")
	errNoConference = errors.New("the account has no video meetings of that kind")
	errNotSent      = errors.New("the request was not sent")
)

// call calls the API and decodes its answer into out. If the API rejects the token, it tries again with a new one.
func (c *Client) call(ctx context.Context, method, path string, params url.Values, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return calendar.Errorf(calendar.Permanent, err, "The request cannot be encoded.")
	}
	if in == nil {
		body = nil
	}
	address := c.base + path
	if len(params) > 0 {
		address += "?" + params.Encode()
	}
	for try := 1; ; try++ {
		access, err := c.tokens.token(ctx)
		if err != nil {
			if e, ok := errors.AsType[*calendar.Error](err); ok {
				e.Err = fmt.Errorf("%w: %w", errNotSent, e.Err)
				return err
			}
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
		resp, err := c.send(ctx, method, address, access, body)
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusUnauthorized && try == 1 {
			_ = resp.Body.Close()
			c.tokens.refused(access)
			continue
		}
		return c.answer(ctx, resp, out)
	}
}

func (c *Client) send(ctx context.Context, method, address, access string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, calendar.Errorf(calendar.Permanent, err, "The calendar's address cannot be used.")
	}
	r.Header.Set("Authorization", "Bearer "+access)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json; charset=UTF-8")
	}
	resp, err := c.http.Do(r)
	if err == nil {
		return resp, nil
	}
	return nil, server.Unanswered(ctx, err)
}

func (c *Client) answer(ctx context.Context, resp *http.Response, out any) error {
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if over, ok := bounded.As(err); ok && ctx.Err() == nil && over.Bound == bounded.BoundFailure {
		return c.refusal(resp, nil)
	}
	if err := server.BrokenOff(ctx, err); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return c.refusal(resp, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return server.Malformed(calendar.Transient, err)
	}
	return nil
}

// tooOften are the reasons of a 403 for too many requests (guides/errors).
var tooOften = []string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}

func (c *Client) refusal(resp *http.Response, data []byte) error {
	var body struct{ Error struct{ Errors [1]reason } }
	_ = json.Unmarshal(data, &body)
	why := body.Error.Errors[0]
	cause := fmt.Errorf("%s answers %s %.60q", resp.Request.Method, resp.Status, why.Reason)
	e := func(kind calendar.Kind, err error, message string) error {
		out := calendar.Errorf(kind, err, "%s", message)
		out.RetryAfter = bounded.RetryAfter(resp.Header, c.options.Now())
		return out
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return e(calendar.Auth, cause, "Google does not accept the calendar's credentials.")
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && slices.Contains(tooOften, why.Reason):
		return e(calendar.RateLimit, cause, "Google gets too many requests.")
	case code == http.StatusForbidden && why.Reason == "forbiddenForServiceAccounts":
		return e(calendar.Permanent, cause, "The calendar's account may not invite people; make the event without attendees.")
	case code == http.StatusForbidden:
		return e(calendar.Auth, cause, "Google does not permit the request for this calendar.")
	case code == http.StatusNotFound, code == http.StatusGone:
		return e(calendar.NotFound, cause, "There is no such calendar, or it is not shared with this service.")
	case code == http.StatusConflict:
		return e(calendar.Conflict, fmt.Errorf("%w: %w", errExists, cause), calendar.Occupied)
	case code == http.StatusPreconditionFailed:
		return e(calendar.Conflict, cause, "The calendar has changed in the meantime.")
	case code == http.StatusBadRequest && strings.Contains(strings.ToLower(why.Message), "conference"):
		return e(calendar.Permanent, fmt.Errorf("%w: %w", errNoConference, cause), "This calendar cannot make video meetings.")
	case code == http.StatusRequestTimeout, code >= 500:
		return e(calendar.Transient, cause, "Google does not work at the moment.")
	default:
		return e(calendar.Permanent, cause, "Google refuses the request.")
	}
}

// The used part of the API's JSON, with Google's names.

type freeBusyResponse struct {
	Calendars map[string]struct {
		Busy []struct {
			Start time.Time `json:"start"`
			End   time.Time `json:"end"`
		} `json:"busy"`
		Errors []reason `json:"errors"`
	} `json:"calendars"`
}

// reason is an error of a calendar in freeBusy.query, or of a whole request.
type reason struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type eventList struct {
	Items         []event `json:"items"`
	NextPageToken string  `json:"nextPageToken"`
	TimeZone      string  `json:"timeZone"` // the calendar's, for all-day events
}

type event struct {
	ID           string          `json:"id,omitempty"`
	ETag         string          `json:"etag,omitempty"`
	Status       string          `json:"status,omitempty"` // confirmed, tentative or cancelled
	Summary      string          `json:"summary,omitempty"`
	Description  string          `json:"description,omitempty"`
	Location     string          `json:"location,omitempty"`
	Start        eventTime       `json:"start"`
	End          eventTime       `json:"end"`
	Transparency string          `json:"transparency,omitempty"` // opaque, transparent
	Visibility   string          `json:"visibility,omitempty"`   // default, public, private, confidential
	EventType    string          `json:"eventType,omitempty"`
	Attendees    []attendee      `json:"attendees,omitempty"`
	HangoutLink  string          `json:"hangoutLink,omitempty"`
	Conference   *conferenceData `json:"conferenceData,omitempty"`
}

type eventTime struct {
	Date     string `json:"date,omitempty"`
	DateTime string `json:"dateTime,omitempty"`
}

type attendee struct {
	Email          string `json:"email"`
	Self           bool   `json:"self,omitempty"`
	Resource       bool   `json:"resource,omitempty"`
	ResponseStatus string `json:"responseStatus,omitempty"` // needsAction, declined, tentative, accepted
}

type conferenceData struct {
	CreateRequest *createConference `json:"createRequest,omitempty"`
	EntryPoints   []entryPoint      `json:"entryPoints,omitempty"`
}

type createConference struct {
	RequestID string      `json:"requestId"`
	Solution  solutionKey `json:"conferenceSolutionKey"`
	Status    *struct {
		Code string `json:"statusCode"` // pending, success, failure
	} `json:"status,omitempty"`
}

type solutionKey struct {
	Type string `json:"type"`
}

type entryPoint struct {
	Type string `json:"entryPointType"` // video, phone, sip, more
	URI  string `json:"uri"`
}

func (e event) isBusy() bool {
	if e.Status == "cancelled" || e.Transparency == "transparent" || e.EventType == "workingLocation" {
		return false
	}
	for _, a := range e.Attendees {
		if a.Self && a.ResponseStatus == "declined" {
			return false
		}
	}
	return true
}

// link returns the address of the video meeting. pending means that Google is still making it.
func (e event) link() (url string, pending bool) {
	if e.HangoutLink != "" {
		return e.HangoutLink, false
	}
	if e.Conference == nil {
		return "", false
	}
	for _, p := range e.Conference.EntryPoints {
		if p.Type == "video" {
			return p.URI, false
		}
	}
	c := e.Conference.CreateRequest
	return "", c != nil && c.Status != nil && c.Status.Code == "pending"
}

const dateForm = time.DateOnly

// at returns the time of an event; days are in zone.
func (t eventTime) at(zone *time.Location) (at time.Time, day bool, err error) {
	if t.Date != "" {
		at, err = time.ParseInLocation(dateForm, t.Date, zone)
		return at, true, err
	}
	at, err = time.Parse(time.RFC3339, t.DateTime)
	return at, false, err
}

func (e event) event(zone *time.Location) (calendar.Event, error) {
	start, day, err := e.Start.at(zone)
	if err != nil {
		return calendar.Event{}, err
	}
	end, _, err := e.End.at(zone)
	if err != nil {
		return calendar.Event{}, err
	}
	out := calendar.Event{
		ID: e.ID, Version: e.ETag, Start: start.UTC(), End: end.UTC(), AllDay: day,
		Tentative: e.Status == "tentative", Private: e.Visibility == "private" || e.Visibility == "confidential",
		Title:       calendar.Cut(e.Summary, calendar.EventTitleRunes),
		Description: calendar.Cut(e.Description, calendar.EventDescriptionRunes),
		Location:    calendar.Cut(e.Location, calendar.EventLocationRunes),
	}
	out.MeetingURL, out.MeetingPending = e.link()
	if out.MeetingURL == "" && isLink(e.Location) {
		out.MeetingURL = e.Location
	}
	for _, a := range e.Attendees {
		if !a.Resource && calendar.IsAddress(a.Email) && len(out.Attendees) < calendar.EventAttendees {
			out.Attendees = append(out.Attendees, a.Email)
		}
	}
	return out, nil
}
