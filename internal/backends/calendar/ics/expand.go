package ics

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"
)

// series is all events with one UID. Some of them replace occurrences of others.
type series struct {
	zones   *zones
	masters []*ical.Component
	changes []*ical.Component // with RECURRENCE-ID
}

type occurrence struct {
	event      *ical.Component
	start, end time.Time
	days       bool // whole days
}

type timed struct {
	start  moment
	length length
	// own means that the length is from a recurrence date, not from the series.
	own bool
}

func (t timed) end() time.Time {
	return t.start.zone.at(t.start.wall.AddDate(0, 0, t.length.days)).Add(t.length.time)
}

const slack = 27 * time.Hour // exceeds every difference between a wall time and its time

// expand lists the occurrences that overlap [from, to).
func (s series) expand(from, to time.Time) ([]occurrence, error) {
	changes, err := s.readChanges()
	if err != nil {
		return nil, err
	}
	var all []occurrence
	keep := func(c *ical.Component, t timed) {
		o := occurrence{event: c, start: t.start.time(), end: t.end(), days: t.start.date}
		if o.start.Before(to) && o.end.After(from) && o.end.After(o.start) {
			all = append(all, o)
		}
	}
	for _, m := range s.masters {
		t, err := s.zones.timed(m)
		if err != nil {
			return nil, err
		}
		times, err := s.times(m, t, to)
		if err != nil {
			return nil, err
		}
		for _, one := range times {
			c, at := changes.apply(m, one)
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

// times lists the times of a master before to: its rules and dates without its exceptions. If a rule and a period have
// the same start, they are one occurrence with the period's length (RFC 5545 section 3.8.5.2).
func (s series) times(m *ical.Component, t timed, to time.Time) ([]timed, error) {
	limit := to.UTC().Add(slack)
	all := []timed{t}
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
			all = append(all, timed{start: moment{stamp{wall: w, date: t.start.date}, t.start.zone}, length: t.length})
		}
	}
	dates, err := s.zones.dates(m, ical.PropRecurrenceDates, t.length)
	if err != nil {
		return nil, err
	}
	all = append(all, dates...)
	exceptions, err := s.zones.dates(m, ical.PropExceptionDates, t.length)
	if err != nil {
		return nil, err
	}
	seen := map[int64]int{} // the index of a start in kept
	out := marks{}
	for _, one := range exceptions {
		out.add(one.start)
	}
	var kept []timed
	for _, one := range all {
		i, again := seen[one.start.time().Unix()]
		switch {
		case out.has(one.start):
		case !again:
			seen[one.start.time().Unix()] = len(kept)
			kept = append(kept, one)
		case one.own:
			kept[i] = one
		}
	}
	return kept, nil
}

// dates reads a property with dates. Only recurrence dates can be periods.
func (z *zones) dates(m *ical.Component, name string, usual length) ([]timed, error) {
	var all []timed
	for i := range m.Props[name] {
		p := &m.Props[name][i]
		for s := range strings.SplitSeq(p.Value, ",") {
			from, till, period := strings.Cut(strings.TrimSpace(s), "/")
			if period && name != ical.PropRecurrenceDates {
				return nil, fmt.Errorf("%w: %.40q is not a time", ErrMalformed, s)
			}
			start, err := z.moment(p, from)
			if err != nil {
				return nil, err
			}
			one := timed{start: start, length: usual, own: period}
			if period {
				one.length, err = z.periodLength(p, start, till)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// periodLength parses the second part of a period: its end or its length (RFC 5545 section 3.3.9).
func (z *zones) periodLength(p *ical.Prop, start moment, till string) (length, error) {
	if till = strings.TrimSpace(till); strings.HasPrefix(strings.ToUpper(strings.TrimPrefix(till, "+")), "P") {
		return parseLength(till)
	}
	end, err := z.moment(p, till)
	if err != nil {
		return length{}, err
	}
	return between(start, end)
}

// marks identify occurrences by a time in UTC or a day.
type marks map[string]bool

func (m marks) add(one moment) {
	if one.date {
		m[one.wall.Format(dateForm)] = true
	} else {
		m[one.time().UTC().Format(utcForm)] = true
	}
}

func (m marks) has(start moment) bool {
	return m[start.time().UTC().Format(utcForm)] || m[start.wall.Format(dateForm)]
}

// changed is an event that replaces an occurrence, or also all later ones.
type changed struct {
	timed
	event *ical.Component
	of    moment // RECURRENCE-ID
	later bool   // also all later occurrences
}

type changes struct {
	singles []changed
	later   []changed // by RECURRENCE-ID
	marks   marks
}

// The bounds of one series.
const (
	maxChanges = 5000 // changed occurrences
	maxLater   = 50   // of those, with all later occurrences
	maxRules   = 4
)

func (s series) readChanges() (changes, error) {
	all := changes{marks: marks{}}
	if len(s.changes) > maxChanges {
		return all, fmt.Errorf("%w: %d of its occurrences were changed", errTooBig, len(s.changes))
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
		all.marks.add(of)
		all.singles = append(all.singles, one)
		if one.later {
			all.later = append(all.later, one)
		}
	}
	if len(all.later) > maxLater {
		return all, fmt.Errorf("%w: %d changes apply to all later occurrences", errTooBig, len(all.later))
	}
	slices.SortFunc(all.later, func(a, b changed) int { return a.of.time().Compare(b.of.time()) })
	return all, nil
}

// apply returns the event and the times of a master's occurrence: nil if another event replaces it, and changed times
// if an earlier event changed all later occurrences.
func (c changes) apply(master *ical.Component, t timed) (*ical.Component, timed) {
	if c.marks.has(t.start) {
		return nil, t
	}
	for _, l := range slices.Backward(c.later) {
		if t.start.time().Before(l.of.time()) {
			continue
		}
		wall := t.start.wall.Add(l.start.wall.Sub(l.of.wall))
		now := timed{start: moment{stamp{wall: wall, date: l.start.date}, l.start.zone}, length: l.length}
		if t.own {
			now.length = t.length
		}
		return l.event, now
	}
	return master, t
}

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

// between returns the length from start to end: in days between days, otherwise by the clock.
func between(start, end moment) (length, error) {
	var l length
	if start.date {
		l.days = int(end.wall.Sub(start.wall).Hours() / 24)
		if !end.date && end.wall.Sub(start.wall)%(24*time.Hour) != 0 {
			l.days++ // the last day is busy as a whole
		}
		// Some programs end a day at its start.
		l.days = cmp.Or(l.days, 1)
	} else {
		l.time = end.time().Sub(start.time())
	}
	if l.days < 0 || l.time < 0 || cmp.Or(l.days, int(l.time.Hours()/24)) > maxDays {
		return l, fmt.Errorf("%w: an event ends before it begins, or after many years", ErrMalformed)
	}
	return l, nil
}

// rule is a checked RRULE. The library that expands rules panics or never returns for some that no calendar needs.
type rule struct {
	option rrule.ROption
	until  *stamp // the last moment, or the last whole day; nil means no end
}

const (
	maxInterval = 10_000
	// maxList bounds the values of one part of a rule, maxTimes the occurrences in a day.
	maxList, maxTimes = 366, 288
	maxSteps          = 100_000 // bounds the computed occurrences, from the first one
)

// allowed are the supported parts of a rule (RFC 5545 section 3.3.10). BYEASTER and the parts of
// RFC 7529 are not supported.
var allowed = []string{"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO",
	"BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS"}

func parseRule(s string) (r rule, err error) {
	refuse := func(format string, a ...any) (rule, error) {
		return rule{}, fmt.Errorf("%w: "+format, append([]any{ErrRule}, a...)...)
	}
	var kept []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.ToUpper(strings.TrimSuffix(strings.TrimSpace(s), ";")), ";") {
		name, v, ok := strings.Cut(part, "=")
		if !ok || seen[name] || !slices.Contains(allowed, name) {
			return refuse("%.40q", part)
		}
		seen[name] = true
		switch n, notNumber := strconv.Atoi(v); {
		case name == "UNTIL":
			until, err := parseWall(v)
			if err != nil {
				return refuse("%.40q", part)
			}
			r.until = &until
			continue
		case (name == "COUNT" || name == "INTERVAL") && (notNumber != nil || n < 1):
			return refuse("%.40q", part)
		case name == "INTERVAL" && n > maxInterval, strings.Count(v, ",") >= maxList:
			return refuse("%.40q is out of bounds", part)
		}
		kept = append(kept, part)
	}
	option, err := rrule.StrToROption(strings.Join(kept, ";"))
	if err != nil {
		return refuse("%.60s", err)
	}
	r.option = *option
	if why := unfit(r.option); why != "" {
		return refuse("%s", why)
	}
	return r, nil
}

// unfit returns the reason why the library cannot expand a rule, or "".
func unfit(o rrule.ROption) string {
	times := max(1, len(o.Byhour)) * max(1, len(o.Byminute)) * max(1, len(o.Bysecond))
	switch {
	case o.Freq > rrule.HOURLY:
		return "it repeats within the hour"
	case o.Freq == rrule.HOURLY && len(o.Byhour)+len(o.Bysetpos)+len(o.Byweekno)+len(o.Byyearday)+len(o.Bymonthday)+len(o.Bymonth) > 0,
		o.Freq == rrule.DAILY && len(o.Bysetpos) > 0:
		return "its hours or days have conditions that are not supported"
	case times > maxTimes:
		return "it repeats too often in a day"
	case len(o.Byweekno) > 0 && o.Freq != rrule.YEARLY:
		return "it has week numbers but is not yearly"
	}
	for _, d := range o.Byweekday {
		most := 53
		if o.Freq == rrule.MONTHLY || len(o.Bymonth) > 0 {
			most = 5
		}
		if n := d.N(); o.Freq <= rrule.MONTHLY && (n > most || n < -most) {
			return "it has a weekday number that does not exist"
		}
	}
	return ""
}

// wallTimes lists the rule's wall times from start, which is always the first, to before end. instant converts a wall
// time, for UNTIL in UTC.
func (r rule) wallTimes(start, end time.Time, instant func(wall time.Time) time.Time) (walls []time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			walls, err = nil, fmt.Errorf("%w: the library failed: %v", ErrRule, p)
		}
	}()
	if !start.Before(end) {
		return nil, nil
	}
	o := r.option
	// The library's own end is 292 years after the start, but zones begin in 1601.
	o.Dtstart, o.Until = start, end
	expanded, err := rrule.NewRRule(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRule, err)
	}
	walls = append(walls, start)
	next := expanded.Iterator()
	for range maxSteps {
		wall, ok := next()
		if !ok || !wall.Before(end) || r.isOver(wall, instant) {
			return walls, nil
		}
		if wall.After(start) {
			walls = append(walls, wall)
		}
	}
	return nil, fmt.Errorf("%w: it has repeated more than %d times", ErrRule, maxSteps)
}

func (r rule) isOver(wall time.Time, instant func(time.Time) time.Time) bool {
	switch u := r.until; {
	case u == nil:
		return false
	case u.date:
		return !wall.Before(u.wall.AddDate(0, 0, 1))
	case u.utc:
		return instant(wall).After(u.wall)
	default:
		return wall.After(u.wall)
	}
}
