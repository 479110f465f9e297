package calendar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"voicegw/registry"
)

// timeForm is the form of times in answers: RFC 3339, UTC, with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z"

// The first and the last time that RFC 3339 can write.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, int(999*time.Millisecond), time.UTC)
)

// FormatTime writes a time for a model. A time that RFC 3339 cannot write becomes the nearest that it can:
// calendars hold events that never end.
func FormatTime(t time.Time) string {
	switch {
	case t.Before(earliest):
		t = earliest
	case t.After(latest):
		t = latest
	}
	return t.UTC().Format(timeForm)
}

// ParseTime reads an argument that is a time: one of RFC 3339 with its offset, or a local time without
// one, which is in the zone. RFC 3339 allows a small t and z, which Go's own parser does not accept. A local time that
// a change of the clocks leaves out or repeats is read as [time.Date] does.
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
	// Start and End are RFC 3339 UTC with milliseconds; End is not part of it.
	Start string `json:"start"`
	End   string `json:"end"`
	// Words describe it in the calendar's zone.
	Words string `json:"words"`
	// Minutes is how long it is, rounded down.
	Minutes int64 `json:"minutes"`
}

// PeriodReplies makes the periods of an answer, never nil and at most limit of them.
func PeriodReplies(periods []Period, limit int, zone *time.Location) []PeriodReply {
	out := []PeriodReply{}
	for _, p := range periods[:min(limit, len(periods))] {
		out = append(out, PeriodReply{FormatTime(p.Start), FormatTime(p.End), Words(p, zone), int64(p.Length() / time.Minute)})
	}
	return out
}

// kinds are the errors of tools for the kinds of a calendar's errors, with advice.
var kinds = map[Kind]struct {
	kind       registry.ErrorType
	suggestion string
}{
	Invalid:  {registry.ErrorValidation, "Correct the arguments and call the tool again."},
	NotFound: {registry.ErrorNotFound, "Tell the user that this calendar is not connected, and go on without it."},
	Auth: {registry.ErrorAuth, "Tell the user that the calendar has to be connected again by whoever runs this service. " +
		"Do not try again."},
	RateLimit: {registry.ErrorRateLimit, "Tell the user that the calendar is busy, and try again later."},
	Transient: {registry.ErrorTransient, "Tell the user that the calendar cannot be reached right now."},
	Conflict:  {registry.ErrorConflict, "Tell the user what stands in the way, and ask for another title or time."},
	Permanent: {registry.ErrorPermanent, "Tell the user that the calendar does not work, and do not try again."},
}

// ToolError makes an error that a model can act on. The error of a context that has ended stays as it
// is; the registry names it.
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

// RetryAfter are the details of an error that may pass after a time.
type RetryAfter struct {
	Seconds int64 `json:"retry_after_seconds"`
}
