package calendar

import (
	"fmt"
	"strings"
	"time"
)

const spoken = 4

func summary(a Availability, within Period, least time.Duration, zone *time.Location) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): ", Words(within, zone), zone)
	switch {
	case len(a.Busy) == 0:
		b.WriteString("nothing is booked, all of it is free.")
	case len(a.Free) == 0 && a.Busy[0] == within:
		b.WriteString("all of it is booked.")
	case len(a.Free) == 0:
		fmt.Fprintf(&b, "%s booked, and no free time of %s or more.", busyWords(a.Busy, zone), lengthWords(least))
	default:
		fmt.Fprintf(&b, "%s booked. Free for %s or more: %s.", busyWords(a.Busy, zone), lengthWords(least), list(a.Free, zone))
	}
	if len(a.Missing) > 0 {
		var names []string
		for _, m := range a.Missing {
			names = append(names, string(m.Calendar))
		}
		fmt.Fprintf(&b, " Not known: the %s calendar, which could not be read.", strings.Join(names, " and the "))
	}
	switch {
	case a.Unread == 1:
		b.WriteString(" One entry could not be read and is not counted.")
	case a.Unread > 1:
		fmt.Fprintf(&b, " %d entries could not be read and are not counted.", a.Unread)
	}
	return b.String()
}

func busyWords(busy []Period, zone *time.Location) string {
	verb := " is"
	if len(busy) > 1 {
		verb = " are"
	}
	return list(busy, zone) + verb
}

func list(periods []Period, zone *time.Location) string {
	var words []string
	for i, p := range periods {
		if i == spoken && len(periods) > spoken+1 {
			words = append(words, fmt.Sprintf("%d more", len(periods)-spoken))
			break
		}
		words = append(words, Words(p, zone))
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

const (
	dayForm   = "Mon 2 Jan 2006"
	clockForm = "15:04"
)

// Words describes a period in zone, such as "Tue 24 Nov 2026 09:00-10:30". Whole days have no times.
func Words(p Period, zone *time.Location) string {
	start, end := p.Start.In(zone), p.End.In(zone)
	last := end.Add(-time.Nanosecond)
	sameDay := start.Format(dayForm) == last.Format(dayForm)
	switch {
	case midnight(start) && midnight(end) && sameDay:
		return start.Format(dayForm)
	case midnight(start) && midnight(end):
		return start.Format(dayForm) + " to " + last.Format(dayForm)
	case sameDay && midnight(end):
		return start.Format(dayForm+" "+clockForm) + "-24:00"
	case sameDay:
		return start.Format(dayForm+" "+clockForm) + "-" + end.Format(clockForm)
	default:
		return start.Format(dayForm+" "+clockForm) + " to " + end.Format(dayForm+" "+clockForm)
	}
}

// midnight reports whether t is the beginning of its day. That is not 0:00 if the clock is put forward at midnight.
func midnight(t time.Time) bool {
	before := t.Add(-time.Nanosecond)
	return t.Day() != before.Day()
}

// lengthWords formats a duration, such as "45 minutes" or "1 hour 30 minutes".
func lengthWords(d time.Duration) string {
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	minutes := int(d / time.Minute)
	hours := minutes / 60
	minutes %= 60
	switch {
	case hours == 0:
		return count(minutes, "minute")
	case minutes == 0:
		return count(hours, "hour")
	default:
		return count(hours, "hour") + " " + count(minutes, "minute")
	}
}
