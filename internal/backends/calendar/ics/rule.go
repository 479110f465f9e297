package ics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// rule is a checked RRULE. The library that expands rules panics or never returns for some that no calendar needs.
type rule struct {
	option rrule.ROption
	// until is the last moment, or the last whole day; nil means no end.
	until *stamp
}

const (
	maxInterval = 10_000
	// maxList bounds the values of one part of a rule, maxTimes the occurrences in a day.
	maxList, maxTimes = 366, 288
	// maxSteps bounds the computed occurrences, from the first one.
	maxSteps = 100_000
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
