package ics

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/emersion/go-ical"
)

// series is what one UID stands for: events, some of which replace occurrences of
// others.
type series struct {
	zones   *zones
	masters []*ical.Component
	changes []*ical.Component // with RECURRENCE-ID
}

// occurrence is one time that an event takes place.
type occurrence struct {
	event      *ical.Component
	start, end time.Time
	days       bool // it has days and no times
}

// timed is the time of a component.
type timed struct {
	start  moment
	length length
}

// slack is how far a wall time and a time may be apart, and a little more.
const slack = 27 * time.Hour

// expand lists the occurrences that overlap [from, to).
func (s series) expand(from, to time.Time) ([]occurrence, error) {
	changes, err := s.readChanges()
	if err != nil {
		return nil, err
	}
	var all []occurrence
	keep := func(c *ical.Component, t timed) {
		o := occurrence{event: c, start: t.start.time(), end: t.length.after(t.start.zone, t.start.wall), days: t.start.date}
		if o.start.Before(to) && o.end.After(from) && o.end.After(o.start) {
			all = append(all, o)
		}
	}
	for _, m := range s.masters {
		t, err := s.zones.timed(m)
		if err != nil {
			return nil, err
		}
		walls, err := s.walls(m, t, to)
		if err != nil {
			return nil, err
		}
		for _, start := range walls {
			c, at := changes.apply(m, timed{start, t.length})
			if c != nil {
				keep(c, at)
			}
		}
	}
	for _, c := range changes.singles {
		keep(c.event, c.timed)
	}
	return all, nil
}

// walls lists when a master takes place up to to: its rules and dates without its
// exceptions.
func (s series) walls(m *ical.Component, t timed, to time.Time) ([]moment, error) {
	limit := to.UTC().Add(slack)
	starts := []moment{t.start}
	if n := len(m.Props[ical.PropRecurrenceRule]); n > maxRules {
		return nil, fmt.Errorf("%w: it has %d rules", ErrRule, n)
	}
	for i := range m.Props[ical.PropRecurrenceRule] {
		r, err := parseRule(m.Props[ical.PropRecurrenceRule][i].Value)
		if err != nil {
			return nil, err
		}
		walls, err := r.wallTimes(t.start.wall, limit, t.start.zone.at)
		if err != nil {
			return nil, err
		}
		for _, w := range walls {
			starts = append(starts, moment{stamp{wall: w, date: t.start.date}, t.start.zone})
		}
	}
	dates, err := s.zones.moments(m, ical.PropRecurrenceDates)
	if err != nil {
		return nil, err
	}
	starts = append(starts, dates...)
	exceptions, err := s.zones.moments(m, ical.PropExceptionDates)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	out := newMarks(exceptions)
	return slices.DeleteFunc(starts, func(start moment) bool {
		again := seen[start.time().Unix()]
		seen[start.time().Unix()] = true
		return again || out.has(start)
	}), nil
}

// marks are moments that point at occurrences: at a time, or at all of a day.
type marks struct {
	times map[int64]bool
	days  map[string]bool
}

func newMarks(moments []moment) marks {
	m := marks{map[int64]bool{}, map[string]bool{}}
	for _, one := range moments {
		if one.date {
			m.days[one.wall.Format(dateForm)] = true
		} else {
			m.times[one.time().Unix()] = true
		}
	}
	return m
}

func (m marks) has(start moment) bool {
	return m.times[start.time().Unix()] || m.days[start.wall.Format(dateForm)]
}

// changed is an event that replaces one occurrence, or all from one on.
type changed struct {
	timed
	event *ical.Component
	of    moment // RECURRENCE-ID
	later bool   // all from there on
}

type changes struct {
	singles []changed
	later   []changed // by RECURRENCE-ID
	marks   marks
}

// What one series may have.
const (
	maxChanges = 5000 // changed occurrences
	maxLater   = 50   // of those, with all that follow
	maxRules   = 4
)

func (s series) readChanges() (changes, error) {
	var all changes
	var ids []moment
	if len(s.changes) > maxChanges {
		return all, fmt.Errorf("%w: %d of its occurrences were changed", ErrTooBig, len(s.changes))
	}
	for _, c := range s.changes {
		p := c.Props.Get(ical.PropRecurrenceID)
		of, err := s.zones.moment(p, p.Value)
		if err != nil {
			return all, err
		}
		t, err := s.zones.timed(c)
		if err != nil {
			return all, err
		}
		one := changed{timed: t, event: c, of: of, later: p.Params.Get(ical.ParamRange) == "THISANDFUTURE"}
		ids = append(ids, of)
		all.singles = append(all.singles, one)
		if one.later {
			all.later = append(all.later, one)
		}
	}
	if len(all.later) > maxLater {
		return all, fmt.Errorf("%w: it was changed from some time on %d times", ErrTooBig, len(all.later))
	}
	all.marks = newMarks(ids)
	slices.SortFunc(all.later, func(a, b changed) int { return a.of.time().Compare(b.of.time()) })
	return all, nil
}

// apply is what a master's occurrence has become: nil for one that an event of its own
// replaces, and with later times where all from some occurrence on were changed.
func (c changes) apply(master *ical.Component, t timed) (*ical.Component, timed) {
	if c.marks.has(t.start) {
		return nil, t
	}
	for _, l := range slices.Backward(c.later) {
		if t.start.time().Before(l.of.time()) {
			continue
		}
		wall := t.start.wall.Add(l.start.wall.Sub(l.of.wall))
		return l.event, timed{moment{stamp{wall: wall, date: l.start.date}, l.start.zone}, l.length}
	}
	return master, t
}

// timed reads when a component begins and how long it lasts.
func (z *zones) timed(c *ical.Component) (timed, error) {
	p := c.Props.Get(ical.PropDateTimeStart)
	if p == nil {
		return timed{}, fmt.Errorf("%w: an event without a start", ErrMalformed)
	}
	start, err := z.moment(p, p.Value)
	if err != nil {
		return timed{}, err
	}
	t := timed{start: start}
	if e := c.Props.Get(ical.PropDateTimeEnd); e != nil {
		end, err := z.moment(e, e.Value)
		if err != nil {
			return t, err
		}
		t.length, err = between(start, end)
		return t, err
	}
	if d := value(c, ical.PropDuration); d != "" {
		t.length, err = parseLength(d)
		return t, err
	}
	if start.date {
		t.length.days = 1 // RFC 5545 section 3.6.1
	}
	return t, nil
}

// between is the length from start to end: in days for days, else by the clock.
func between(start, end moment) (length, error) {
	var l length
	if start.date {
		l.days = int(end.wall.Sub(start.wall).Hours() / 24)
		if !end.date && end.wall.Sub(start.wall)%(24*time.Hour) != 0 {
			l.days++ // a day that ends at some time is busy for all of it
		}
		// Some programs end a day on itself.
		if l.days == 0 {
			l.days = 1
		}
	} else {
		l.time = end.time().Sub(start.time())
	}
	if l.days < 0 || l.time < 0 || cmp.Or(l.days, int(l.time.Hours()/24)) > maxDays {
		return l, fmt.Errorf("%w: an event ends before it begins, or after many years", ErrMalformed)
	}
	return l, nil
}
