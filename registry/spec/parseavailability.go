package spec

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no zones of its own

	"voicegw/registry/document"
)

var (
	weekdays    = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // in the order of time.Weekday
	clockForm   = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	featureForm = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

	availabilityKeys = []string{"agents", "features", "scopes", "times", "zone"}
	windowKeys       = []string{"from", "since", "to", "until", "weekdays"}
)

// maxFeature limits a feature's name, in bytes.
const maxFeature = 64

// ValidFeature reports whether a feature may have that name: at most 64 lower-case letters, digits, and single - and
// _ between them, starting with a letter.
func ValidFeature(name string) bool { return len(name) <= maxFeature && featureForm.MatchString(name) }

// availability parses the conditions of the tool's availability.
func (r *specReader) availability() (*Availability, *hours) {
	v, has := r.object["availability"]
	if !has {
		return nil, nil
	}
	at := document.Pointer{"availability"}
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		r.problem(at, "\"availability\" is an object with conditions, such as {\"features\": [\"beta\"]}, got %s; for a tool "+
			"that is always there, leave it out.", document.Describe(v))
		return nil, nil
	}
	r.onlyKeys(at, object, "an availability", availabilityKeys)
	a, h := new(Availability), new(hours)
	r.zone(at, object, a, h)
	r.times(at.With("times"), object, a, h)
	a.Agents = r.conditions(at.With("agents"), object["agents"], "the id of an agent, such as \"desk\"", func(s string) bool {
		return strings.TrimSpace(s) == s && s != "" && len(s) <= MaxAgent
	})
	a.Scopes = r.conditions(at.With("scopes"), object["scopes"], "a scope, such as \"calendar.write\"", ValidScope)
	a.Features = r.conditions(at.With("features"), object["features"],
		"the name of a feature, in small letters, digits, - and _, such as \"spring-sale\"", ValidFeature)
	return a, h
}

func (r *specReader) onlyKeys(at document.Pointer, object map[string]any, what string, known []string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			r.problem(at.With(key), "The key %q is not known: %s has %s%s.", document.Shorten(key, 60), what,
				strings.Join(known, ", "), document.DidYouMean(key, known))
		}
	}
}

// conditions parses a list of words.
func (r *specReader) conditions(at document.Pointer, v any, what string, fits func(string) bool) []string {
	if v == nil && !r.there(at) {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		r.problem(at, "%q is a list, got %s; an entry is %s.", at[len(at)-1], document.Describe(v), what)
		return nil
	case len(list) == 0:
		r.problem(at, "%q is empty, so nobody would ever have the tool; name one, or leave it out.", at[len(at)-1])
		return nil
	case len(list) > maxConditions:
		r.problem(at, "%q has %d entries, at most %d are allowed.", at[len(at)-1], len(list), maxConditions)
		return nil
	}
	return r.words(at, list, "", "An entry is "+what, fits)
}

// there reports whether an availability has a key.
func (r *specReader) there(at document.Pointer) bool {
	object, _ := r.object["availability"].(map[string]any)
	_, has := object[at[len(at)-1]]
	return has
}

func (r *specReader) zone(at document.Pointer, object map[string]any, a *Availability, h *hours) {
	v, has := object["zone"]
	_, timed := object["times"]
	switch {
	case !has && timed:
		r.problem(at.With("zone"), "The key \"zone\" is missing; add the IANA name of the zone that the times are in, such as "+
			"\"Europe/Oslo\" or \"UTC\".")
		return
	case !has:
		return
	case !timed:
		r.problem(at.With("zone"), "A zone says nothing without \"times\"; add them, or leave it out.")
	}
	name, _ := v.(string)
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		r.problem(at.With("zone"), "\"zone\" is the IANA name of a zone, such as \"Europe/Oslo\" or \"UTC\", got %s.", document.Show(v))
		return
	}
	a.Zone, h.zone = name, zone
}

func (r *specReader) times(at document.Pointer, object map[string]any, a *Availability, h *hours) {
	v, has := object["times"]
	if !has {
		return
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		r.problem(at, "\"times\" is a list of windows, such as [{\"weekdays\": [\"mon\"], \"from\": \"09:00\", \"to\": "+
			"\"17:00\"}], got %s.", document.Describe(v))
		return
	case len(list) == 0:
		r.problem(at, "\"times\" is empty, so nobody would ever have the tool; name a window, or leave it out.")
		return
	case len(list) > maxWindows:
		r.problem(at, "\"times\" has %d windows, at most %d are allowed.", len(list), maxWindows)
		return
	}
	for i, v := range list {
		r.window(at.Index(i), v, a, h)
	}
}

func (r *specReader) window(at document.Pointer, v any, a *Availability, h *hours) {
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		r.problem(at, "A window is an object with at least one of %s, got %s.", strings.Join(windowKeys, ", "), document.Describe(v))
		return
	}
	before := len(r.problems)
	r.onlyKeys(at, object, "a window", windowKeys)
	told, w := TimeWindow{}, window{to: 24 * 60}
	told.Weekdays = r.weekdays(at.With("weekdays"), object, &w)
	told.From, w.from = r.clock(at.With("from"), object, 0)
	told.To, w.to = r.clock(at.With("to"), object, 24*60)
	told.Since, w.since = r.date(at.With("since"), object)
	told.Until, w.until = r.date(at.With("until"), object)
	if len(r.problems) == before {
		r.possible(at, told, w)
	}
	a.Times, h.windows = append(a.Times, told), append(h.windows, w)
}

// possible reports a window that never holds.
func (r *specReader) possible(at document.Pointer, told TimeWindow, w window) {
	switch {
	case w.from >= w.to:
		r.problem(at.With("to"), "The window ends at %s and begins at %s, so that it never holds; over midnight, write two "+
			"windows, one to \"24:00\" and one from \"00:00\".", cmp.Or(told.To, "24:00"), cmp.Or(told.From, "00:00"))
	case !w.since.IsZero() && !w.until.IsZero() && w.until.Before(w.since):
		r.problem(at.With("until"), "The window ends on %s, before it begins on %s, so that it never holds.", told.Until, told.Since)
	case !w.since.IsZero() && !w.until.IsZero():
		for date := w.since; !date.After(w.until); date = date.AddDate(0, 0, 1) {
			if w.on(date) || date.Sub(w.since) >= 7*24*time.Hour {
				return
			}
		}
		r.problem(at.With("weekdays"), "No day from %s to %s is one of these weekdays, so that the window never holds.",
			told.Since, told.Until)
	}
}

func (r *specReader) weekdays(at document.Pointer, object map[string]any, w *window) (days []string) {
	v, has := object["weekdays"]
	if !has {
		w.days = [7]bool{true, true, true, true, true, true, true}
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		r.problem(at, "\"weekdays\" is a list such as [\"mon\", \"fri\"], got %s; for every day, leave it out.", document.Describe(v))
		return nil
	}
	days = r.words(at, list, "", "A weekday is one of mon, tue, wed, thu, fri, sat, sun",
		func(s string) bool { return slices.Contains(weekdays, s) }, weekdays...)
	for _, day := range days {
		w.days[slices.Index(weekdays, day)] = true
	}
	return days
}

// clock parses a time of day as minutes; missing is the default.
func (r *specReader) clock(at document.Pointer, object map[string]any, missing int) (string, int) {
	v, has := object[at[len(at)-1]]
	if !has {
		return "", missing
	}
	text, _ := v.(string)
	switch {
	case text == "24:00" && at[len(at)-1] == "to":
		return text, 24 * 60
	case !clockForm.MatchString(text):
		r.problem(at, "%q is a time of day from 00:00 to 23:59, such as \"09:30\" (\"to\" may be \"24:00\"), got %s.",
			at[len(at)-1], document.Show(v))
		return "", missing
	}
	return text, int(text[0]-'0')*600 + int(text[1]-'0')*60 + int(text[3]-'0')*10 + int(text[4]-'0')
}

func (r *specReader) date(at document.Pointer, object map[string]any) (string, time.Time) {
	v, has := object[at[len(at)-1]]
	if !has {
		return "", time.Time{}
	}
	text, _ := v.(string)
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		r.problem(at, "%q is a date such as \"2026-12-24\", got %s.", at[len(at)-1], document.Show(v))
		return "", time.Time{}
	}
	return text, date
}
