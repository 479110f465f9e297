package calendar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"voicegw/internal/textutil"
	"voicegw/registry"
)

const timeForm = "2006-01-02T15:04:05.000Z" // the form of times in answers: RFC 3339, UTC, with milliseconds

// The first and last times in RFC 3339.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, int(999*time.Millisecond), time.UTC)
)

// FormatTime formats a time for a model. A time outside RFC 3339 becomes the nearest one inside: some events never end.
func FormatTime(t time.Time) string {
	switch {
	case t.Before(earliest):
		t = earliest
	case t.After(latest):
		t = latest
	}
	return t.UTC().Format(timeForm)
}

// ParseTime parses a tool's argument: an RFC 3339 time, or a local time of the zone, without an offset. It also accepts
// a lower-case t and z, which RFC 3339 allows and package time does not. [time.Date] decides about local times that a
// change of the clocks skips or repeats.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is not a time; write it as 2026-11-23T09:00:00", text)
}

// PeriodReply is a time in an answer.
type PeriodReply struct {
	// Start and End are RFC 3339 UTC with milliseconds; End is exclusive.
	Start   string `json:"start"`
	End     string `json:"end"`
	Words   string `json:"words"`   // describe it in the calendar's zone
	Minutes int64  `json:"minutes"` // the length, rounded down
}

// PeriodReplies converts at most limit periods. It never returns nil.
func PeriodReplies(periods []Period, limit int, zone *time.Location) []PeriodReply {
	out := []PeriodReply{}
	for _, p := range periods[:min(limit, len(periods))] {
		out = append(out, PeriodReply{FormatTime(p.Start), FormatTime(p.End), Words(p, zone), int64(p.Length() / time.Minute)})
	}
	return out
}

// kinds maps a calendar's errors to those of tools, with advice for the model.
var kinds = map[Kind]struct {
	kind       registry.ErrorType
	suggestion string
}{
	Invalid:   {registry.ErrorValidation, "Correct the arguments and call the tool again."},
	NotFound:  {registry.ErrorNotFound, "Tell the user that this calendar is not connected, and continue without it."},
	Auth:      {registry.ErrorAuth, "Tell the user that the operator of this service has to connect the calendar again. Do not try again."},
	RateLimit: {registry.ErrorRateLimit, "Tell the user that the calendar is busy, and try again later."},
	Transient: {registry.ErrorTransient, "Tell the user that the calendar cannot be reached right now."},
	Conflict:  {registry.ErrorConflict, "Tell the user about the conflict, and ask for another title or time."},
	Permanent: {registry.ErrorPermanent, "Tell the user that the calendar does not work, and do not try again."},
}

// ToolError converts an error for a model. It leaves the error of an ended context to the registry.
func ToolError(ctx context.Context, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e = Errorf(Transient, err, "The calendar cannot be reached at the moment.")
	}
	as, known := kinds[e.Kind]
	if !known {
		as = kinds[Permanent]
	}
	out := registry.Errorf(as.kind, "%s", e.Message)
	out.Err, out.Suggestion, out.PartialSideEffects = err, as.suggestion, e.Unsure
	switch {
	case e.Unsure && out.Retryable:
		out.Repeatable = true // with the same key, so the calendar makes the event once
		out.Suggestion = "Tell the user that the event may have been made. Calling the tool again with the same arguments is " +
			"safe: it makes no second one."
	case e.Unsure:
		out.Suggestion = "Tell the user that the event may have been made, and what to look for in the calendar. Do not call " +
			"the tool again before."
	}
	if e.RetryAfter > 0 {
		out.Details = RetryAfter{int64(math.Ceil(e.RetryAfter.Seconds()))}
	}
	return out
}

// RetryAfter is the detail of an error with a requested pause.
type RetryAfter struct {
	Seconds int64 `json:"retry_after_seconds"`
}

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
	minutes := int(d / time.Minute)
	var words []string
	if minutes >= 60 {
		words = append(words, textutil.Count(minutes/60, "hour"))
	}
	if minutes%60 > 0 || minutes == 0 {
		words = append(words, textutil.Count(minutes%60, "minute"))
	}
	return strings.Join(words, " ")
}
