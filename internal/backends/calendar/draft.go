package calendar

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"voicegw/internal/textutil"
)

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

// IsAddress reports whether s is an e-mail address without a name.
func IsAddress(s string) bool {
	if len(s) > maxAddress || !addressForm.MatchString(s) {
		return false
	}
	a, err := mail.ParseAddress(s) // refuses two dots together, or a dot at an end
	return err == nil && a.Name == "" && a.Address == s
}
