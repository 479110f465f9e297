// Package calendar finds free time and creates events. The backends of [Calendar] are iCalendar folders (package ics),
// CalDAV servers (package caldav) and Google Calendar (package google). Tools use a [Scheduler]: it queries several
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
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"voicegw/internal/textutil"
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

// Field is a part of a [Draft].
type Field string

// The fields.
const (
	FieldTitle       Field = "title"
	FieldStart       Field = "start"
	FieldEnd         Field = "end"
	FieldDescription Field = "description"
	FieldAttendees   Field = "attendees"
)

// Problem is an error in a draft.
type Problem struct {
	Field   Field
	Message string // describes the problem and its correction to a model
}

// Problems returns all problems of a draft except its key.
func (d Draft) Problems() (all []Problem) {
	bad := func(f Field, format string, args ...any) {
		all = append(all, Problem{f, fmt.Sprintf(format, args...)})
	}
	switch {
	case isBlank(d.Title):
		bad(FieldTitle, "The title is blank; it needs at least one letter, digit or symbol.")
	case strings.ContainsFunc(d.Title, unicode.IsControl):
		bad(FieldTitle, "The title has a line break or another control character; write it as one line.")
	case strings.ContainsFunc(d.Title, turns):
		bad(FieldTitle, "The title has a character that turns the direction of writing; leave it out.")
	case utf8.RuneCountInString(d.Title) > maxTitle:
		bad(FieldTitle, "The title has %d characters; at most %d are possible.", utf8.RuneCountInString(d.Title), maxTitle)
	}
	if n := utf8.RuneCountInString(d.Description); n > maxDescription {
		bad(FieldDescription, "The description has %d characters; at most %d are possible.", n, maxDescription)
	}
	if n := len(d.Attendees); n > maxAttendees {
		bad(FieldAttendees, "There are %d attendees; at most %d are possible.", n, maxAttendees)
	}
	for _, a := range d.Attendees {
		if !IsAddress(a) {
			bad(FieldAttendees, "%.100q is not an e-mail address.", a)
		}
	}
	d.timeProblems(bad)
	return all
}

func (d Draft) timeProblems(bad func(f Field, format string, args ...any)) {
	for _, t := range []struct {
		field Field
		at    time.Time
	}{{FieldStart, d.Start}, {FieldEnd, d.End}} {
		if _, seconds := t.at.Zone(); time.Duration(seconds).Abs()*time.Second > maxOffset {
			bad(t.field, "The offset %s does not exist; offsets are -12:00 to +14:00.", t.at.Format("-07:00"))
		}
	}
	switch {
	case !d.End.Truncate(time.Second).After(d.Start.Truncate(time.Second)): // calendars know whole seconds
		bad(FieldEnd, "The event ends before it begins, or at once; give an end after the start.")
	case d.End.Sub(d.Start) > maxLength:
		bad(FieldEnd, "The event lasts more than %d days, the most that is possible. Check the dates.", int(maxLength.Hours()/24))
	}
	const form = "2006-01-02T15:04Z07:00"
	switch {
	case d.Start.Year() < 1970 || d.End.Year() > 9998:
		bad(FieldStart, "The year %d cannot be meant; check it.", d.Start.Year())
	case d.Now.IsZero():
	case d.Start.Before(d.Now.Add(-grace)):
		bad(FieldStart, "The event would begin in the past: it is %s now. Check the date and the year.", d.Now.UTC().Format(form))
	case d.Start.After(d.Now.AddDate(maxAhead, 0, 0)):
		bad(FieldStart, "The event would begin more than %d years from now: it is %s. Check the year.", maxAhead, d.Now.UTC().Format(form))
	}
}

func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return textutil.IsVisible(r) && unicode.In(r, unicode.L, unicode.N, unicode.S) })
}

// turns reports whether r changes the writing direction, which could mislead the person who approves a title.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// addressForm is the accepted form of an e-mail address. RFC 5322 also allows quotes, comments and spaces, which real
// addresses do not have and a calendar would have to escape.
var addressForm = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,61}` +
	`[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

const maxAddress = 254 // the maximum length of an address (RFC 5321 section 4.5.3.1.3)

// Address returns an address without mailto: and spaces around it.
func Address(s string) string {
	const mailto = "mailto:"
	s = strings.TrimSpace(s)
	if len(s) > len(mailto) && strings.EqualFold(s[:len(mailto)], mailto) {
		return s[len(mailto):]
	}
	return s
}

// IsAddress reports whether s is an e-mail address without a name.
func IsAddress(s string) bool {
	if len(s) > maxAddress || !addressForm.MatchString(s) {
		return false
	}
	a, err := mail.ParseAddress(s) // refuses two dots together, or a dot at an end
	return err == nil && a.Name == "" && a.Address == s
}
