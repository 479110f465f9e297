// Package calendar finds free time and creates events. The backends of [Calendar] are iCalendar folders (package ics),
// CalDAV servers (package caldav) and Google Calendar (package google). Tools use a [Desk]: it queries several
// calendars at once, merges overlapping events, finds the free time between them and describes it in English.
//
// A period is half open: it includes its start but not its end, so a meeting until ten and a meeting from ten do not
// overlap.
//
// Everything here may be used concurrently.
package calendar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Name is a calendar's name for models. The operator assigns a calendar to it.
type Name string

// The names.
const (
	Primary  Name = "primary"
	Team     Name = "team"
	Personal Name = "personal"
)

// Names lists all names, in the order for display.
func Names() []Name { return []Name{Primary, Team, Personal} }

// Calendar is a backend with a calendar for each name. Its errors are [*Error], or the error of a context that ended
// before a change. It may be used concurrently.
type Calendar interface {
	// Busy returns the events of one calendar that keep its owner busy and overlap [q.From, q.To): each occurrence of a
	// recurring event, but no event that is cancelled, declined or marked as free time. They are not cut to the range
	// and are in no order. The error is of kind NotFound if q.Calendar is not configured.
	Busy(ctx context.Context, q Query) (Found, error)
	// Create adds an event to the primary calendar. If an event with the same Key exists, it returns that event, with
	// created false, and changes nothing: any number of calls, even concurrent ones, make one event. After an Unsure
	// error the event may exist, or may appear later.
	Create(ctx context.Context, d Draft) (e Event, created bool, err error)
	// Find looks for the event of a key in the primary calendar. It returns found false without an error only if the
	// calendar has answered that the event does not exist.
	Find(ctx context.Context, key string) (e Event, found bool, err error)
}

// Query is a question to one calendar.
type Query struct {
	Calendar Name
	// From and To bound the time, half open.
	From, To time.Time
	Details  bool // asks for titles, places and people. Without it a backend may omit them.
}

// Found is the answer of a calendar.
type Found struct {
	Events []Event
	Unread []Unread // existing events that are missing in Events
}

// Unread is an event, or a file of events, that could not be read.
type Unread struct {
	ID  string // identifies it to the operator
	Err error
}

// Event is one occurrence of an event.
type Event struct {
	// ID is the backend's id, which all occurrences of a series share; Version is an etag. Either may be empty.
	ID, Version string
	Calendar    Name
	// Start and End bound it, half open, UTC.
	Start, End time.Time
	AllDay     bool // Start and End are midnights in the calendar's zone
	Tentative  bool // not confirmed
	Private    bool // the details are omitted

	// The details: plain text, bounded in length.
	Title, Description, Location string
	MeetingURL                   string      // the address of the video meeting; empty if the event has no such meeting
	MeetingPending               bool        // the calendar is still making the link
	Attendees                    []string    // e-mail addresses
	Invitations                  Invitations // set in events that Create returns
}

// The limits of an [Event]: of its details in characters, and of its attendees.
const (
	EventTitleRunes       = 300
	EventLocationRunes    = 300
	EventDescriptionRunes = 2000
	EventAttendees        = 50
)

// Cut returns at most limit characters of a detail.
func Cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Invitations is the state of an event's invitations.
type Invitations string

// The values of Invitations.
const (
	InvitationsNone     Invitations = "none"                        // the event has no attendees
	InvitationsSent     Invitations = "sent"                        // the calendar sends them
	InvitationsByServer Invitations = "left_to_the_calendar_server" // the server decides whether to send them
	InvitationsNotSent  Invitations = "not_sent"                    // the event names the attendees, but they get no invitation
)

// Limits of a [Draft], in characters.
const (
	maxTitle       = 200
	maxDescription = 2000
	maxAttendees   = 50
	maxLength      = 7 * 24 * time.Hour  // bounds the length of an event: a longer one nearly always has a wrong date
	MaxRange       = 31 * 24 * time.Hour // bounds the range of a query
	maxAhead       = 20                  // bounds the time until an event begins, in years
	// grace bounds the time since an event began: a draft that begins now needs time for its approval.
	grace     = 10 * time.Minute
	maxOffset = 14 * time.Hour // the largest offset from UTC of any time zone, in either direction
)

// Draft is an event to create.
type Draft struct {
	Key         string // identifies the event; see [Key]
	Title       string
	Start, End  time.Time
	Description string // may be empty, Attendees nil; they are plain e-mail addresses
	Attendees   []string
	// Meeting requests a link to a video meeting. A backend that cannot make one uses MeetingURL, if it is set.
	Meeting    bool
	MeetingURL string
	Now        time.Time // the time of the request; zero allows any start
}

var keyForm = regexp.MustCompile(`^[a-v0-9]{8,64}$`)

// Key identifies an event by its user, title and times. The form of the times (10:00Z or 12:00+02:00) and the title's
// spaces and capitals do not change it. It consists of a-v and digits, which all backends accept in an id.
func Key(user, title string, start, end time.Time) string {
	title = strings.ToLower(strings.Join(strings.Fields(title), " "))
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", user, title, start.Unix(), end.Unix()))
	return "vg" + hex.EncodeToString(sum[:16])
}

// Check returns the first problem of a draft as an [*Error] of kind Invalid, or nil.
func (d Draft) Check() error {
	if !keyForm.MatchString(d.Key) {
		return Errorf(Invalid, nil, "The event has no key.")
	}
	for _, p := range d.Problems() {
		return Errorf(Invalid, nil, "%s", p.Message)
	}
	return nil
}
