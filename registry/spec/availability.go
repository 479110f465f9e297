package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/registry/document"
)

// Availability limits a tool's availability. All set fields must hold.
type Availability struct {
	// Times are windows in the time zone Zone, an IANA name; one must hold.
	Times  []TimeWindow `json:"times,omitempty"`
	Zone   string       `json:"zone,omitempty"`
	Agents []string     `json:"agents,omitempty"`
	// Scopes lists sufficient scopes; one must be granted. [Spec.Requires] are all needed.
	Scopes []string `json:"scopes,omitempty"`
	// Features are operators' flags that must all be on; see registry.Options.Feature.
	Features []string `json:"features,omitempty"`
}

// TimeWindow is a time of day on some days. Empty fields set no limit.
type TimeWindow struct {
	Weekdays []string `json:"weekdays,omitempty"`
	// From and To are times such as 09:30. To is exclusive and may be 24:00.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Since and Until are inclusive dates such as 2026-12-24.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

type hours struct {
	zone    *time.Location
	windows []window
}

// window is a TimeWindow in minutes of the day, and dates in UTC; zero means no limit.
type window struct {
	days         [7]bool
	from, to     int
	since, until time.Time
}

func (r *reader) hours(a *Availability) *hours {
	if a == nil {
		return nil
	}
	at := document.Pointer{"availability"}
	switch {
	case a.Zone == "" && a.Times != nil && r.fine("availability", "zone"):
		r.problem(at.With("zone"), "The key \"zone\" is missing; add the IANA name of the zone that the times are in, such as "+
			"\"Europe/Oslo\" or \"UTC\".")
	case a.Zone != "" && a.Times == nil && r.fine("availability", "times"):
		r.problem(at.With("zone"), "A zone has no effect without \"times\"; add them, or remove the zone.")
	}
	zone, _ := time.LoadLocation(a.Zone)
	h := &hours{zone: zone}
	for i, told := range a.Times {
		w := told.compile()
		if place := at.With("times").Index(i); r.fine(place...) {
			r.possible(place, told, w)
		}
		h.windows = append(h.windows, w)
	}
	return h
}

func (t TimeWindow) compile() window {
	w := window{from: minutes(cmp.Or(t.From, "00:00")), to: minutes(cmp.Or(t.To, "24:00"))}
	w.since, _ = time.Parse(time.DateOnly, t.Since)
	w.until, _ = time.Parse(time.DateOnly, t.Until)
	for i, day := range weekdays {
		w.days[i] = t.Weekdays == nil || slices.Contains(t.Weekdays, day)
	}
	return w
}

func minutes(clock string) int {
	hours, minutes, _ := strings.Cut(clock, ":")
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	return h*60 + m
}

func (r *reader) possible(at document.Pointer, told TimeWindow, w window) {
	switch {
	case w.from >= w.to:
		r.problem(at.With("to"), "The window ends at %s and begins at %s, so it never applies; for a window over midnight, "+
			"write two, one to \"24:00\" and one from \"00:00\".", cmp.Or(told.To, "24:00"), cmp.Or(told.From, "00:00"))
	case w.since.IsZero() || w.until.IsZero():
	case w.until.Before(w.since):
		r.problem(at.With("until"), "The window ends on %s, before it begins on %s, so it never applies.", told.Until, told.Since)
	default:
		for date := w.since; !date.After(w.until); date = date.AddDate(0, 0, 1) {
			if w.on(date) || date.Sub(w.since) >= 7*24*time.Hour {
				return
			}
		}
		r.problem(at.With("weekdays"), "No day from %s to %s is one of these weekdays, so the window never applies.",
			told.Since, told.Until)
	}
}

func civil(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func (w window) on(date time.Time) bool {
	return w.days[date.Weekday()] && (w.since.IsZero() || !date.Before(w.since)) && (w.until.IsZero() || !date.After(w.until))
}

func (h *hours) open(now time.Time) bool {
	local := now.In(h.zone)
	date, minute := civil(local), local.Hour()*60+local.Minute()
	return slices.ContainsFunc(h.windows, func(w window) bool { return w.on(date) && w.from <= minute && minute < w.to })
}

func (h *hours) opens(now time.Time) (next time.Time) {
	for _, w := range h.windows {
		date := civil(now.In(h.zone))
		if date.Before(w.since) {
			date = w.since
		}
		for range 8 { // if today is over, the same weekday is eight days away
			if w.on(date) {
				at := time.Date(date.Year(), date.Month(), date.Day(), w.from/60, w.from%60, 0, 0, h.zone)
				if at.After(now) && (next.IsZero() || at.Before(next)) {
					next = at
				}
				if at.After(now) {
					break
				}
			}
			date = date.AddDate(0, 0, 1)
		}
	}
	return next
}

// String describes the conditions for people.
func (a Availability) String() string {
	var all []string
	for _, w := range a.Times {
		all = append(all, w.String()+" ("+a.Zone+")")
	}
	text := joined(all, "; or ")
	for _, more := range []struct {
		what string
		list []string
	}{{"agents", a.Agents}, {"one of the scopes", a.Scopes}, {"features", a.Features}} {
		if len(more.list) > 0 {
			text = joined([]string{text, more.what + " " + joined(more.list, ", ")}, "; ")
		}
	}
	return text
}

// String describes the window, such as "mon, fri from 09:00 to 17:00 since 2026-11-01".
func (t TimeWindow) String() string {
	parts := []string{joined(t.Weekdays, ", ")}
	for _, bound := range [][2]string{{"from", t.From}, {"to", t.To}, {"since", t.Since}, {"until", t.Until}} {
		if bound[1] != "" {
			parts = append(parts, fmt.Sprint(bound[0], " ", bound[1]))
		}
	}
	return joined(parts, " ")
}

func joined(texts []string, with string) (all string) {
	for _, text := range texts {
		if text != "" && all != "" {
			all += with
		}
		all += text
	}
	return all
}
