package ics

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/emersion/go-ical"

	"voicegw/internal/backends/calendar"
)

// reader reads iCalendar.
type reader struct {
	Zone  *time.Location // for days and for times without a zone; nil means UTC
	Email string         // the owner's address. Events that the owner declined are not busy.
	// MaxParts bounds the lines and parameters of one input; zero means 80,000, enough for thousands of events.
	MaxParts int
}

// Busy returns the events in data as Busy of [calendar.Calendar] does, with unreadable ones in Unread. An error means
// that data is not iCalendar or too large, or that the context has ended.
func (r reader) Busy(ctx context.Context, data []byte, from, to time.Time) (calendar.Found, error) {
	calendars, err := decode(data, r.MaxParts)
	if err != nil {
		return calendar.Found{}, err
	}
	var found calendar.Found
	for _, c := range calendars {
		for _, s := range r.series(c) {
			if ctx.Err() != nil {
				return calendar.Found{}, ctx.Err()
			}
			occurrences, err := s.expand(from, to)
			if err != nil {
				found.Unread = append(found.Unread, calendar.Unread{ID: s.id(), Err: err})
				continue
			}
			if found.Events = r.busy(found.Events, occurrences); len(found.Events) > maxEvents {
				return calendar.Found{}, errTooMany
			}
		}
	}
	return found, nil
}

// busy appends the occurrences that keep the owner busy, up to maxEvents+1, so that Busy can recognise too many.
// Occurrences of one event share its texts.
func (r reader) busy(to []calendar.Event, occurrences []occurrence) []calendar.Event {
	events := map[*ical.Component]*calendar.Event{} // nil for an event that is not busy
	for _, o := range occurrences {
		e, known := events[o.event]
		if !known && r.isBusy(o.event) {
			one := r.event(o)
			e = &one
		}
		events[o.event] = e
		if e == nil {
			continue
		}
		if len(to) > maxEvents {
			return to
		}
		e.Start, e.End, e.AllDay = o.start.UTC(), o.end.UTC(), o.days
		to = append(to, *e)
	}
	return to
}

// First returns the first event in data, busy or not, as one of the primary calendar. invitations is the state of those
// of its attendees.
func (r reader) First(data []byte, invitations calendar.Invitations) (calendar.Event, error) {
	calendars, err := decode(data, r.MaxParts)
	if err != nil {
		return calendar.Event{}, err
	}
	for _, c := range calendars {
		for _, s := range r.series(c) {
			if len(s.masters) == 0 {
				continue
			}
			t, err := s.zones.timed(s.masters[0])
			if err != nil {
				return calendar.Event{}, err
			}
			e := r.event(occurrence{s.masters[0], t.start.time(), t.end(), t.start.date})
			if e.Calendar, e.Invitations = calendar.Primary, calendar.InvitationsNone; len(e.Attendees) > 0 {
				e.Invitations = invitations
			}
			return e, nil
		}
	}
	return calendar.Event{}, fmt.Errorf("%w: it has no event", ErrMalformed)
}

// series groups the events of a calendar by UID, in their order.
func (r reader) series(c *ical.Calendar) []series {
	zones := newZones(cmp.Or(r.Zone, time.UTC), c)
	var all []series
	index := map[string]int{}
	for _, e := range c.Events() {
		uid := value(e.Component, ical.PropUID)
		i, known := index[uid]
		if !known || uid == "" {
			i = len(all)
			index[uid] = i
			all = append(all, series{zones: zones})
		}
		if e.Props.Get(ical.PropRecurrenceID) != nil {
			all[i].changes = append(all[i].changes, e.Component)
		} else {
			all[i].masters = append(all[i].masters, e.Component)
		}
	}
	return all
}

func (s series) id() string {
	for _, c := range slices.Concat(s.masters, s.changes) {
		if uid := text(c, ical.PropUID, 200); uid != "" {
			return uid
		}
	}
	return "(without a UID)"
}

func (r reader) isBusy(c *ical.Component) bool {
	if strings.EqualFold(value(c, ical.PropTransparency), "TRANSPARENT") || strings.EqualFold(value(c, ical.PropStatus), "CANCELLED") {
		return false
	}
	for i := range c.Props[ical.PropAttendee] {
		p := &c.Props[ical.PropAttendee][i]
		declined := strings.EqualFold(p.Params.Get(ical.ParamParticipationStatus), "DECLINED")
		if declined && r.Email != "" && strings.EqualFold(r.Email, calendar.Address(p.Value)) {
			return false
		}
	}
	return true
}

func (r reader) event(o occurrence) calendar.Event {
	c := o.event
	class := strings.ToUpper(value(c, ical.PropClass))
	e := calendar.Event{
		ID:    text(c, ical.PropUID, 255),
		Start: o.start.UTC(), End: o.end.UTC(), AllDay: o.days,
		Tentative:   strings.EqualFold(value(c, ical.PropStatus), "TENTATIVE"),
		Private:     class == "PRIVATE" || class == "CONFIDENTIAL",
		Title:       text(c, ical.PropSummary, calendar.EventTitleRunes),
		Description: text(c, ical.PropDescription, calendar.EventDescriptionRunes),
		Location:    text(c, ical.PropLocation, calendar.EventLocationRunes),
	}
	for i := range c.Props[ical.PropAttendee] {
		a := calendar.Address(c.Props[ical.PropAttendee][i].Value)
		if calendar.IsAddress(a) && len(e.Attendees) < calendar.EventAttendees {
			e.Attendees = append(e.Attendees, a)
		}
	}
	for _, name := range []string{ical.PropConference, "X-GOOGLE-CONFERENCE", ical.PropLocation} {
		if link := value(c, name); e.MeetingURL == "" && (strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://")) {
			e.MeetingURL = plain(unescape(link), calendar.EventLocationRunes)
		}
	}
	return e
}

func value(c *ical.Component, name string) string {
	if p := c.Props.Get(name); p != nil {
		return strings.TrimSpace(p.Value)
	}
	return ""
}

// text returns at most limit characters of a property, without escapes and control characters.
func text(c *ical.Component, name string, limit int) string {
	return plain(unescape(value(c, name)), limit)
}

var escape = regexp.MustCompile(`(?s)\\.`)

// unescape loses no text at a stray backslash or a bare comma, unlike the decoder's own function.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(pair string) string {
		if escaped := pair[1:]; !strings.EqualFold(escaped, "n") {
			return escaped
		}
		return "\n"
	})
}

func plain(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return calendar.Cut(strings.TrimSpace(s), limit)
}

type stamp struct {
	wall time.Time
	date bool // a day without a time
	utc  bool // written with Z
}

const minYear = 1600 // the first accepted year: Outlook's zones begin in 1601

const (
	dateForm = "20060102"
	timeForm = "20060102T150405"
)

// parseWall parses a date or date-time (RFC 5545 sections 3.3.4 and 3.3.5).
func parseWall(s string) (stamp, error) {
	s = strings.TrimSpace(s)
	local, utc := strings.CutSuffix(s, "Z")
	if t, err := time.Parse(timeForm, local); err == nil && len(local) == len(timeForm) && t.Year() >= minYear {
		return stamp{wall: t, utc: utc}, nil
	}
	if t, err := time.Parse(dateForm, s); err == nil && len(s) == len(dateForm) && t.Year() >= minYear {
		return stamp{wall: t, date: true}, nil
	}
	return stamp{}, fmt.Errorf("%w: %.40q is not a time", ErrMalformed, s)
}

// moment is a stamp with its zone.
type moment struct {
	stamp
	zone zone
}

func (m moment) time() time.Time { return m.zone.at(m.wall) }

func (z *zones) moment(p *ical.Prop, s string) (moment, error) {
	at, err := parseWall(s)
	if err != nil {
		return moment{}, err
	}
	m := moment{stamp: at, zone: z.floating}
	switch id := p.Params.Get(ical.ParamTimezoneID); {
	case at.utc:
		m.zone = place{time.UTC}
	case !at.date && id != "":
		m.zone, err = z.named(id)
	}
	return m, err
}

// length is a duration of calendar days and time.
type length struct {
	days int
	time time.Duration
}

const maxDays = 4000

// lengthForm is a DURATION: weeks, days, hours, minutes, seconds.
var lengthForm = regexp.MustCompile(`^\+?P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$`)

// parseLength parses a DURATION (RFC 5545 section 3.3.6). Its weeks and days are calendar days.
func parseLength(s string) (length, error) {
	parts := lengthForm.FindStringSubmatch(strings.ToUpper(s))
	if parts == nil || strings.Join(parts[1:], "") == "" {
		return length{}, fmt.Errorf("%w: %.40q is not a duration", ErrMalformed, s)
	}
	var n [6]int
	for i := 1; i < len(parts); i++ {
		n[i], _ = strconv.Atoi(parts[i]) // empty, or at most nine digits
	}
	l := length{days: 7*n[1] + n[2]}
	seconds := 3600*n[3] + 60*n[4] + n[5]
	if l.days > maxDays || seconds > maxDays*86400 {
		return length{}, fmt.Errorf("%w: a duration of many years", ErrMalformed)
	}
	l.time = time.Duration(seconds) * time.Second
	return l, nil
}
