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

// Name is one of the calendars that there are for a model. What it stands for is the
// operator's to say.
type Name string

// The names.
const (
	Primary  Name = "primary"
	Team     Name = "team"
	Personal Name = "personal"
)

// Names lists all names, in the order in which they are shown.
func Names() []Name { return []Name{Primary, Team, Personal} }

// Calendar is a backend: it keeps the calendars behind the names. Its errors are
// [*Error], or that of a context that has ended before anything was changed. It may be
// used from any number of goroutines at once.
type Calendar interface {
	// Busy returns the events of one calendar that keep its owner busy and overlap
	// [q.From, q.To): recurring ones as often as they happen, and none that is
	// cancelled, declined or marked as free time. They are not cut to the range and in
	// no order. The error is of kind NotFound where nothing stands behind q.Calendar.
	Busy(ctx context.Context, q Query) (Found, error)
	// Create puts an event into the primary calendar. Where one of the same Key is
	// there already it returns that one, as it is now, with created false, and changes
	// nothing: any number of calls, also at once, make one event. After an error that is
	// Unsure the event may be there, or may come yet.
	Create(ctx context.Context, d Draft) (e Event, created bool, err error)
	// Find looks for the event of a key in the primary calendar. found is false, without
	// an error, only where the calendar has said that it is not there.
	Find(ctx context.Context, key string) (e Event, found bool, err error)
}

// Query is a question to one calendar.
type Query struct {
	Calendar Name
	// From and To bound the time asked for, half open.
	From, To time.Time
	// Details asks for titles, places and people. Without it a backend may leave them
	// out.
	Details bool
}

// Found is what a calendar answers with.
type Found struct {
	Events []Event
	// Unread are events that are there and could not be understood, so that their time
	// is not among Events.
	Unread []Unread
}

// Unread is an event, or a file of events, that could not be understood.
type Unread struct {
	// ID says which, for the operator.
	ID string
	// Err says why.
	Err error
}

// Event is one time that something takes place.
type Event struct {
	// ID is the backend's id (of a series, all occurrences have the same), Version what
	// changes with every change of it (an etag); either may be empty.
	ID, Version string
	Calendar    Name
	// Start and End bound it, half open, UTC.
	Start, End time.Time
	// AllDay says that it has days and no times: Start and End are midnights of the
	// calendar's zone.
	AllDay bool
	// Tentative says that it is not settled.
	Tentative bool
	// Private says that its details are nobody's business; they are left out.
	Private bool

	// The details: plain text, bounded in length.
	Title, Description, Location string
	// MeetingURL is where to join by video; empty for none.
	MeetingURL string
	// MeetingPending says that the link is being made.
	MeetingPending bool
	// Attendees are e-mail addresses.
	Attendees []string
	// Invitations says what became of those to Attendees, for an event that Create has
	// returned.
	Invitations Invitations
}

// Invitations says what becomes of invitations.
type Invitations string

// The values of Invitations.
const (
	// InvitationsNone: nobody was to be invited.
	InvitationsNone Invitations = "none"
	// InvitationsSent: the calendar sends them.
	InvitationsSent Invitations = "sent"
	// InvitationsByServer: the attendees are in the event, and whether they are told is
	// the server's affair.
	InvitationsByServer Invitations = "left_to_the_calendar_server"
	// InvitationsNotSent: nobody is told; the attendees are only noted.
	InvitationsNotSent Invitations = "not_sent"
)

// Limits of a [Draft], in characters.
const (
	MaxTitle       = 200
	MaxDescription = 2000
	maxAttendees   = 50
	// maxLength bounds how long an event may last: one of weeks is nearly always a wrong
	// date.
	maxLength = 7 * 24 * time.Hour
	// MaxRange bounds a range that is asked for.
	MaxRange = 31 * 24 * time.Hour
	// maxAhead is how many years ahead an event may begin.
	maxAhead = 20
	// grace is how long ago an event may have begun: "now" is written down, asked about
	// and approved before the event is made.
	grace = 10 * time.Minute
	// maxOffset is the largest offset from UTC that a clock on earth has, either way.
	maxOffset = 14 * time.Hour
)

// Draft is an event to be made.
type Draft struct {
	// Key names the deed; see [Key].
	Key        string
	Title      string
	Start, End time.Time
	// Description may be empty, Attendees nil; they are plain e-mail addresses.
	Description string
	Attendees   []string
	// Meeting asks for a link to a video meeting. A backend that can make one does; one
	// that cannot puts MeetingURL in, if there is one.
	Meeting    bool
	MeetingURL string
	// Now is when it was asked for; the zero time allows any start.
	Now time.Time
}

var keyForm = regexp.MustCompile(`^[a-v0-9]{8,64}$`)

// Key names a deed: what a person wants to have at a time. It is the same for every
// call that means the same, however the times are written (10:00Z or 12:00+02:00) and
// whatever spaces and capitals the title has, and tells users apart. It has the
// characters that all backends take as an id: a-v and digits.
func Key(user, title string, start, end time.Time) string {
	title = strings.ToLower(strings.Join(strings.Fields(title), " "))
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", user, title, start.Unix(), end.Unix()))
	return "vg" + hex.EncodeToString(sum[:16])
}

// Check says what is wrong with a draft, as an [*Error] of kind Invalid: the first of its
// problems.
func (d Draft) Check() error {
	if !keyForm.MatchString(d.Key) {
		return Errorf(Invalid, nil, "The event has no key.")
	}
	for _, p := range d.Problems() {
		return Errorf(Invalid, nil, "%s", p.Message)
	}
	return nil
}
