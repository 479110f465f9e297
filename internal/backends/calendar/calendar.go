package calendar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Name is the name of a calendar, as a model knows it. The operator decides which calendar it
// means.
type Name string

// The names.
const (
	Primary  Name = "primary"
	Team     Name = "team"
	Personal Name = "personal"
)

// Names lists all names, in the order in which they are shown.
func Names() []Name { return []Name{Primary, Team, Personal} }

// Calendar is a backend: it keeps the calendars behind the names. Its errors are [*Error], or
// that of a context that has ended before anything was changed. It may be used concurrently.
type Calendar interface {
	// Busy returns the events of one calendar that keep its owner busy and overlap
	// [q.From, q.To): each occurrence of a recurring one, and none that is cancelled, declined
	// or marked as free time. They are not cut to the range and are in no order. The error is of
	// kind NotFound if q.Calendar is not configured.
	Busy(ctx context.Context, q Query) (Found, error)
	// Create puts an event into the primary calendar. If one of the same Key exists, it returns
	// that one, as it is now, with created false, and changes nothing: any number of calls, even
	// at the same time, make one event. After an error that is Unsure the event may exist, or
	// may appear later.
	Create(ctx context.Context, d Draft) (e Event, created bool, err error)
	// Find looks for the event of a key in the primary calendar. It returns found false without
	// an error only if the calendar has answered that the event does not exist.
	Find(ctx context.Context, key string) (e Event, found bool, err error)
}

// Query is a question to one calendar.
type Query struct {
	Calendar Name
	// From and To bound the time asked for, half open.
	From, To time.Time
	// Details asks for titles, places and people. Without it a backend may omit them.
	Details bool
}

// Found is the answer of a calendar.
type Found struct {
	Events []Event
	// Unread are events that exist and could not be read, so that their time is missing in
	// Events.
	Unread []Unread
}

// Unread is an event, or a file of events, that could not be read.
type Unread struct {
	// ID identifies it to the operator.
	ID string
	// Err says why.
	Err error
}

// Event is one occurrence of an event.
type Event struct {
	// ID is the backend's id (all occurrences of a series have the same one); Version changes
	// with every change (an etag). Either may be empty.
	ID, Version string
	Calendar    Name
	// Start and End bound it, half open, UTC.
	Start, End time.Time
	// AllDay says that the event has days and no times: Start and End are midnights in the
	// calendar's zone.
	AllDay bool
	// Tentative says that it is not confirmed.
	Tentative bool
	// Private says that its details are private; they are left out.
	Private bool

	// The details: plain text, bounded in length.
	Title, Description, Location string
	// MeetingURL is the address of the video meeting; empty if the event has no such meeting.
	MeetingURL string
	// MeetingPending says that the link is being made.
	MeetingPending bool
	// Attendees are e-mail addresses.
	Attendees []string
	// Invitations says what happened to the invitations, for an event that Create has
	// returned.
	Invitations Invitations
}

// Invitations says what happens to invitations.
type Invitations string

// The values of Invitations.
const (
	// InvitationsNone: nobody is to be invited.
	InvitationsNone Invitations = "none"
	// InvitationsSent: the calendar sends them.
	InvitationsSent Invitations = "sent"
	// InvitationsByServer: the attendees are in the event, and the server decides whether to
	// tell them.
	InvitationsByServer Invitations = "left_to_the_calendar_server"
	// InvitationsNotSent: nobody is told; the attendees are only noted.
	InvitationsNotSent Invitations = "not_sent"
)

// Limits of a [Draft], in characters.
const (
	maxTitle       = 200
	maxDescription = 2000
	maxAttendees   = 50
	// maxLength bounds how long an event may last: one of weeks is nearly always a wrong
	// date.
	maxLength = 7 * 24 * time.Hour
	// MaxRange bounds the range of a query.
	MaxRange = 31 * 24 * time.Hour
	// maxAhead is how many years ahead an event may begin.
	maxAhead = 20
	// grace is how long ago an event may have begun: "now" is written down, asked about
	// and approved before the event is made.
	grace = 10 * time.Minute
	// maxOffset is the largest offset from UTC of any time zone, in either direction.
	maxOffset = 14 * time.Hour
)

// Draft is an event to be made.
type Draft struct {
	// Key identifies the event; see [Key].
	Key        string
	Title      string
	Start, End time.Time
	// Description may be empty, Attendees nil; they are plain e-mail addresses.
	Description string
	Attendees   []string
	// Meeting asks for a link to a video meeting. A backend that can make one does; another one
	// uses MeetingURL, if it is set.
	Meeting    bool
	MeetingURL string
	// Now is when it was asked for; the zero time allows any start.
	Now time.Time
}

var keyForm = regexp.MustCompile(`^[a-v0-9]{8,64}$`)

// Key identifies an event that a person wants: its user, times and title. It is the same for
// every call with the same meaning, however the times are written (10:00Z or 12:00+02:00) and
// whatever spaces and capitals the title has. It has only characters that all backends accept in
// an id: a-v and digits.
func Key(user, title string, start, end time.Time) string {
	title = strings.ToLower(strings.Join(strings.Fields(title), " "))
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", user, title, start.Unix(), end.Unix()))
	return "vg" + hex.EncodeToString(sum[:16])
}

// Check returns the first problem of a draft as an [*Error] of kind Invalid; nil if it has none.
func (d Draft) Check() error {
	if !keyForm.MatchString(d.Key) {
		return Errorf(Invalid, nil, "The event has no key.")
	}
	for _, p := range d.Problems() {
		return Errorf(Invalid, nil, "%s", p.Message)
	}
	return nil
}
