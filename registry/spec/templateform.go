package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/registry/document"
)

// argumentForm is how a preview formats an argument: {start|time}, {start..end|time in Europe/Oslo}, {guests|list},
// {items|list: {count} x {name}}.
type argumentForm struct {
	times bool           // otherwise a list
	until []string       // the end of a time span, or nil
	zone  *time.Location // nil for the user's zone
	item  *template      // the format of an item; nil for the item itself
}

var errForm = errors.New("what stands behind | is time, \"time in\" and a zone such as Europe/Oslo, list, or \"list:\" and " +
	"what to write of each item")

func parseForm(name, text string) (string, *argumentForm, error) {
	kind, rest := strings.TrimSpace(text), ""
	if before, after, has := strings.Cut(kind, ":"); has && before == "list" {
		kind, rest = "list", strings.TrimSpace(after)
	} else if zone, has := strings.CutPrefix(kind, "time in "); has {
		kind, rest = "time", strings.TrimSpace(zone)
	}
	f := &argumentForm{times: kind == "time"}
	switch {
	case kind == "list" && rest != "":
		item, err := parseTemplate(rest, false)
		if err != nil {
			return name, nil, err
		}
		f.item = &item
	case kind == "time":
		if rest != "" {
			zone, err := time.LoadLocation(rest)
			if err != nil || rest == "Local" {
				return name, nil, fmt.Errorf("%q is not the IANA name of a zone, such as Europe/Oslo", rest)
			}
			f.zone = zone
		}
		if start, end, span := strings.Cut(name, ".."); span {
			name, f.until = start, strings.Split(end, ".")
		}
	case kind != "list":
		return name, nil, errForm
	}
	return name, f, nil
}

func (f *argumentForm) check(name string, n, root *document.Node) error {
	if !f.times {
		items := n.ItemsOf()
		switch {
		case items == nil:
			return fmt.Errorf("{%s} is not a list", name)
		case f.item != nil:
			return f.item.check(items)
		case slices.Contains(n.ItemTypes(), "object"):
			return fmt.Errorf("{%s} is a list of objects; write what to show of each, as in {%s|list: {name}}", name, name)
		}
		return nil
	}
	const wrong = "{%s} is not a time: it needs \"type\": \"string\" and \"format\": \"date-time\", or a pattern for local times"
	if !n.IsTime() {
		return fmt.Errorf(wrong, name)
	}
	if f.until == nil {
		return nil
	}
	end := root
	for _, token := range f.until {
		if end = end.Property(token); end == nil {
			return fmt.Errorf("{%s} is not an argument: the parameters have no such end of the time", strings.Join(f.until, "."))
		}
	}
	if !end.IsTime() {
		return fmt.Errorf(wrong, strings.Join(f.until, "."))
	}
	return nil
}

func (f *argumentForm) text(v, args any, zone *time.Location) string {
	if f.times {
		return timeText(v, args, f.until, cmp.Or(f.zone, zone))
	}
	list, ok := v.([]any)
	if !ok {
		return plainText(v)
	}
	items := make([]string, len(list))
	for i, item := range list {
		if f.item != nil {
			items[i] = f.item.text(item, zone)
		} else {
			items[i] = plainText(item)
		}
	}
	if last := len(items) - 1; last > 0 {
		return strings.Join(items[:last], ", ") + " and " + items[last]
	}
	return strings.Join(items, "")
}

const dayAndTime = "Mon 2 Jan 2006, "

// timeText formats a span as "Tue 24 Nov 2026, 10:00 to 11:00 (Europe/Oslo, UTC+1)", or a moment if until is nil.
// Without a zone it shows the start's offset, or none for a local time.
func timeText(v, args any, until []string, zone *time.Location) string {
	start, local, ok := moment(v, zone)
	if !ok {
		return plainText(v)
	}
	text := start.Format(dayAndTime + clockOfDay(start))
	if until != nil {
		told, _ := document.At(args, until)
		if end, _, ok := moment(told, zone); ok {
			end = end.In(start.Location())
			text += " to "
			if !civil(end).Equal(civil(start)) {
				text += end.Format(dayAndTime)
			}
			text += end.Format(clockOfDay(end))
		} else if told != nil {
			text += " to " + plainText(told)
		}
	}
	switch {
	case zone != nil && !strings.HasSuffix(zone.String(), "UTC"): // nor Etc/UTC
		return text + " (" + zone.String() + ", " + offset(start) + ")"
	case local && zone == nil:
		return text
	}
	return text + " (" + offset(start) + ")"
}

// moment parses a time and converts it to zone unless nil. A time without an offset is in that zone.
func moment(v any, zone *time.Location) (t time.Time, local, ok bool) {
	text, _ := v.(string)
	text = strings.ToUpper(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if zone != nil {
			t = t.In(zone)
		}
		return t, false, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, cmp.Or(zone, time.UTC)); err == nil {
			return t, true, true
		}
	}
	return time.Time{}, false, false
}

func clockOfDay(t time.Time) string {
	if t.Second() != 0 {
		return "15:04:05"
	}
	return "15:04"
}

func offset(t time.Time) string {
	_, seconds := t.Zone()
	if seconds == 0 {
		return "UTC"
	}
	sign, minutes := "+", seconds/60
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	if minutes%60 == 0 {
		return fmt.Sprintf("UTC%s%d", sign, minutes/60)
	}
	return fmt.Sprintf("UTC%s%d:%02d", sign, minutes/60, minutes%60)
}
