package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/prompts/toolerror"
)

// Availability says when, where and for whom a tool is there. Each field that is set must hold.
type Availability struct {
	// Times are windows, of which one must hold, in the time of Zone, an IANA name.
	Times []TimeWindow `json:"times,omitempty"`
	Zone  string       `json:"zone,omitempty"`
	// Agents are ids, of which the conversation's agent must have one.
	Agents []string `json:"agents,omitempty"`
	// Scopes are those of which the conversation must have at least one; [Spec.Requires] are all needed.
	Scopes []string `json:"scopes,omitempty"`
	// Features are flags of the operator's, all of which must be on; see [Options.Feature].
	Features []string `json:"features,omitempty"`
}

// TimeWindow is a time of day on some days. A field that is empty bounds nothing.
type TimeWindow struct {
	// Weekdays are of mon, tue, wed, thu, fri, sat and sun.
	Weekdays []string `json:"weekdays,omitempty"`
	// From and To are times such as 09:30; To may be 24:00, and is not part of the window.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Since and Until are dates such as 2026-12-24, both part of the window.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

const (
	// maxWindows is how many windows there may be, maxConditions how many entries each other list may have.
	maxWindows    = 32
	maxConditions = 32
)

// condition is one that does not hold; empty if all do.
type condition string

// The conditions. They are looked at in this order, so byTime means that all others hold.
const (
	byAgent   condition = "agent"
	byScope   condition = "scope"
	byFeature condition = "feature"
	byTime    condition = "time"
)

// hours is the compiled form of the times of an [Availability].
type hours struct {
	zone    *time.Location
	windows []window
}

// window is a TimeWindow: minutes of the day, and dates as times in UTC, zero where nothing bounds.
type window struct {
	days         [7]bool
	from, to     int
	since, until time.Time
}

// civil returns the date of t in its zone, as a time in UTC.
func civil(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// on reports whether the window is open at some time of a date.
func (w window) on(date time.Time) bool {
	return w.days[date.Weekday()] && (w.since.IsZero() || !date.Before(w.since)) && (w.until.IsZero() || !date.After(w.until))
}

func (h *hours) open(now time.Time) bool {
	local := now.In(h.zone)
	date, minute := civil(local), local.Hour()*60+local.Minute()
	return slices.ContainsFunc(h.windows, func(w window) bool { return w.on(date) && w.from <= minute && minute < w.to })
}

// opens returns when the tool is there next; zero if that never comes.
func (h *hours) opens(now time.Time) (next time.Time) {
	for _, w := range h.windows {
		date := civil(now.In(h.zone))
		if date.Before(w.since) {
			date = w.since
		}
		for range 8 { // today may be over, so that the next such weekday is eight days away
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

// lacks returns the first condition that does not hold for a conversation, at its Now.
func (t *Tool) lacks(s Session, feature func(agent, name string) bool) condition {
	a := t.Availability
	if a == nil {
		return ""
	}
	switch {
	case len(a.Agents) > 0 && !slices.Contains(a.Agents, s.Agent):
		return byAgent
	case len(a.Scopes) > 0 && !slices.ContainsFunc(a.Scopes, func(scope string) bool { return slices.Contains(s.Scopes, scope) }):
		return byScope
	case slices.ContainsFunc(a.Features, func(name string) bool { return feature == nil || !feature(s.Agent, name) }):
		return byFeature
	case len(a.Times) > 0 && !t.compiled.hours.open(s.Now):
		return byTime
	}
	return ""
}

// Available returns a snapshot of the same version without the tools whose availability does not hold for a
// conversation at its Now. Of those that only the time withholds a call can still be prepared: it is refused
// by [Prepared.Unavailable], with when it can be made. A nil snapshot stays nil.
func (s *Snapshot) Available(session Session) *Snapshot {
	if s == nil {
		return nil
	}
	why := map[*Tool]condition{}
	for _, t := range s.sorted {
		if lacks := t.lacks(session, s.opts.Feature); lacks != "" {
			why[t] = lacks
		}
	}
	if len(why) == 0 {
		return s
	}
	sub := s.having(func(t *Tool) bool { return why[t] == "" })
	for t, lacks := range why {
		if lacks == byTime && len(t.Dynamic) == 0 { // whose enums nobody fills any more
			if sub.closed == nil {
				sub.closed = map[string]*Tool{}
			}
			sub.closed[t.ToolID] = t
		}
	}
	return sub
}

// Unavailable returns the answer to a call whose tool is not available to the session at its Now, and nil
// if it is. A call of a tool that the session began without is always refused.
func (p *Prepared) Unavailable(s Session) *Envelope {
	lacks := p.tool.lacks(s, p.snapshot.opts.Feature)
	if lacks == "" && !p.closed {
		return nil
	}
	if lacks == "" {
		lacks = byTime
	}
	var next time.Time
	when := ""
	if h := p.tool.compiled.hours; lacks == byTime && h != nil && !h.open(s.Now) {
		if next = h.opens(s.Now); !next.IsZero() {
			when = next.Format("Mon 2 Jan 2006, 15:04") + " (" + h.zone.String() + ")"
		}
	}
	words := toolerror.NotAvailable(p.tool.ToolID)
	if when != "" {
		words = toolerror.NotAvailableNow(p.tool.ToolID, when)
	}
	told := NewError(ErrorUnavailable, words)
	details := struct {
		Reason      condition `json:"reason"`
		AvailableAt string    `json:"available_at,omitempty"`
	}{Reason: lacks}
	if !next.IsZero() {
		details.AvailableAt, told.Retryable = next.UTC().Format(time.RFC3339), true
	}
	told.Details, _ = json.Marshal(details) // only texts: it cannot fail
	env := p.Refuse(told)
	return &env
}

// String returns the conditions in words, for people.
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

// String returns the window in words, such as "mon, fri from 09:00 to 17:00 since 2026-11-01".
func (w TimeWindow) String() string {
	parts := []string{joined(w.Weekdays, ", ")}
	for _, bound := range [][2]string{{"from", w.From}, {"to", w.To}, {"since", w.Since}, {"until", w.Until}} {
		if bound[1] != "" {
			parts = append(parts, fmt.Sprint(bound[0], " ", bound[1]))
		}
	}
	return joined(parts, " ")
}

// joined joins the texts that are not empty.
func joined(texts []string, with string) (all string) {
	for _, text := range texts {
		if text != "" && all != "" {
			all += with
		}
		all += text
	}
	return all
}
