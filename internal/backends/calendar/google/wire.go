package google

import (
	"time"

	"voicegw/internal/backends/calendar"
)

// The used part of the API's JSON, with Google's names.

type freeBusyRequest struct {
	TimeMin string   `json:"timeMin"`
	TimeMax string   `json:"timeMax"`
	Items   []itemID `json:"items"`
}

type itemID struct {
	ID string `json:"id"`
}

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
	Domain  string `json:"domain"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type errorResponse struct {
	Error struct {
		Errors  []reason `json:"errors"`
		Code    int      `json:"code"`
		Message string   `json:"message"`
	} `json:"error"`
}

type eventList struct {
	Items         []event `json:"items"`
	NextPageToken string  `json:"nextPageToken"`
	// TimeZone is the calendar's, for all-day events.
	TimeZone string `json:"timeZone"`
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
