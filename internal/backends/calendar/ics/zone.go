package ics

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no zones of its own

	"github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"
)

// zone converts a wall time into a moment. A wall time is a [time.Time] in UTC with the wall clock's date and time.
type zone interface {
	at(wall time.Time) time.Time
}

type place struct{ loc *time.Location }

// at follows RFC 5545 section 3.3.5: a wall time that occurs twice or never has the offset from before the change of
// the clocks.
func (p place) at(wall time.Time) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, p.loc)
	now := offset(near)
	if change, _ := near.ZoneBounds(); !change.IsZero() {
		before := offset(change.Add(-time.Second).In(p.loc))
		gap := time.Duration(max(now-before, 0)) * time.Second
		if t := wall.Add(-time.Duration(before) * time.Second); t.Before(change.Add(gap)) {
			return t
		}
	}
	return wall.Add(-time.Duration(now) * time.Second)
}

func offset(t time.Time) int {
	_, o := t.Zone()
	return o
}

// zones finds the zones of one calendar object.
type zones struct {
	floating zone // of days and of times without a zone
	own      map[string]*ical.Component
	known    map[string]zone
}

func newZones(floating *time.Location, c *ical.Calendar) *zones {
	z := &zones{floating: place{floating}, own: map[string]*ical.Component{}, known: map[string]zone{}}
	for _, child := range c.Children {
		if child.Name == ical.CompTimezone {
			z.own[value(child, ical.PropTimezoneID)] = child
		}
	}
	return z
}

func (z *zones) named(id string) (zone, error) {
	if known, ok := z.known[id]; ok {
		return known, nil
	}
	found, err := z.find(id)
	if err == nil {
		z.known[id] = found
	}
	return found, err
}

func (z *zones) find(id string) (zone, error) {
	own, has := z.own[id]
	candidates := []string{id}
	if has {
		candidates = append(candidates, value(own, "X-LIC-LOCATION"))
	}
	// Names such as "/freeassociation.sourceforge.net/Europe/Berlin" end in Area/Place or Area/Region/Place.
	if parts := strings.Split(id, "/"); len(parts) > 2 {
		candidates = append(candidates, strings.Join(parts[len(parts)-3:], "/"), strings.Join(parts[len(parts)-2:], "/"))
	}
	for _, c := range candidates {
		if c == "" || c == "Local" {
			continue
		}
		if loc, err := time.LoadLocation(c); err == nil {
			return place{loc}, nil
		}
	}
	if !has {
		return nil, fmt.Errorf("%w: %.60q", ErrZone, id)
	}
	return newObserved(own)
}

// observed is the zone of a VTIMEZONE (RFC 5545 section 3.6.5).
type observed struct {
	rules   []observance
	changes []change // those of the years to upTo, in order
	upTo    int
}

const (
	maxObservances = 200 // bounds the observances of one zone; most have two
	ahead          = 40  // the number of years after the requested one whose changes are computed too
)

// observance is a STANDARD or DAYLIGHT.
type observance struct {
	start    time.Time // wall time by the offset before it
	from, to time.Duration
	rule     rule
	repeats  bool
	dates    []time.Time
}

type change struct {
	onset    time.Time // wall time by the offset before it
	from, to time.Duration
}

func newObserved(c *ical.Component) (*observed, error) {
	o := &observed{}
	if len(c.Children) > maxObservances {
		return nil, fmt.Errorf("%w: its VTIMEZONE has %d observances", ErrZone, len(c.Children))
	}
	for _, child := range c.Children {
		if child.Name != ical.CompTimezoneStandard && child.Name != ical.CompTimezoneDaylight {
			continue
		}
		r, err := newObservance(child)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrZone, err)
		}
		o.rules = append(o.rules, r)
	}
	if len(o.rules) == 0 {
		return nil, fmt.Errorf("%w: its VTIMEZONE has no observance", ErrZone)
	}
	return o, nil
}

func newObservance(c *ical.Component) (observance, error) {
	var o observance
	start, err := parseWall(value(c, ical.PropDateTimeStart))
	if err != nil {
		return o, err
	}
	o.start = start.wall
	if o.from, err = parseOffset(value(c, ical.PropTimezoneOffsetFrom)); err != nil {
		return o, err
	}
	if o.to, err = parseOffset(value(c, ical.PropTimezoneOffsetTo)); err != nil {
		return o, err
	}
	if text := value(c, ical.PropRecurrenceRule); text != "" {
		if o.rule, err = parseRule(text); err != nil {
			return o, err
		}
		o.repeats = true
		if o.rule.option.Freq != rrule.YEARLY {
			return o, fmt.Errorf("%w: a rule for changes of the clocks must be yearly", ErrRule)
		}
	}
	for _, p := range c.Props[ical.PropRecurrenceDates] {
		for one := range strings.SplitSeq(p.Value, ",") {
			w, err := parseWall(one)
			if err != nil {
				return o, err
			}
			o.dates = append(o.dates, w.wall)
		}
	}
	return o, nil
}

// at uses the last change before wall, or the offset from before the first change.
func (o *observed) at(wall time.Time) time.Time {
	changes := o.until(wall.Year())
	i := sort.Search(len(changes), func(i int) bool { return changes[i].onset.After(wall) }) - 1
	if i < 0 {
		first := o.rules[0]
		for _, r := range o.rules {
			if r.start.Before(first.start) {
				first = r
			}
		}
		return wall.Add(-first.from)
	}
	c := changes[i]
	if t := wall.Add(-c.to); !t.Before(c.onset.Add(-c.from)) {
		return t
	}
	return wall.Add(-c.from) // in the gap
}

func (o *observed) until(year int) []change {
	if year <= o.upTo {
		return o.changes
	}
	o.upTo, o.changes = year+ahead, nil
	end := time.Date(o.upTo+1, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range o.rules {
		onsets := append([]time.Time{r.start}, r.dates...)
		if r.repeats {
			// A valid yearly rule cannot fail here.
			more, err := r.rule.wallTimes(r.start, end, func(wall time.Time) time.Time { return wall.Add(-r.from) })
			if err == nil {
				onsets = append(onsets, more...)
			}
		}
		for _, onset := range onsets {
			if onset.Before(end) {
				o.changes = append(o.changes, change{onset, r.from, r.to})
			}
		}
	}
	slices.SortFunc(o.changes, func(a, b change) int { return a.onset.Compare(b.onset) })
	return o.changes
}

// parseOffset parses "+0100" or "-123045" (RFC 5545 section 3.3.14).
func parseOffset(s string) (time.Duration, error) {
	digits := strings.TrimLeft(s, "+-")
	if len(s) != len(digits)+1 || len(digits) != 4 && len(digits) != 6 {
		return 0, fmt.Errorf("%w: the offset %.20q", ErrMalformed, s)
	}
	n, err := strconv.ParseUint(digits+"00"[:6-len(digits)], 10, 32)
	h, m, sec := n/10000, n/100%100, n%100
	if err != nil || h > 23 || m > 59 || sec > 59 {
		return 0, fmt.Errorf("%w: the offset %.20q", ErrMalformed, s)
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second
	if s[0] == '-' {
		d = -d
	}
	return d, nil
}
