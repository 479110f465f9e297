package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/registry"
)

// Filter selects records that match all of its fields. A zero field matches every record.
type Filter struct {
	Session string
	User    string
	Tool    string
	Event   Event
	// Since is the earliest accepted time, Until the first later time that is not accepted.
	Since, Until time.Time
	Failed       bool                 // records that are not OK
	Errors       []registry.ErrorType // records with one of these
	Undelivered  bool                 // calls whose answer the model did not get
}

// Match reports whether the filter accepts a record.
func (f Filter) Match(r Record) bool {
	switch {
	case !strings.HasPrefix(r.SessionID, f.Session),
		f.User != "" && r.UserID != f.User,
		f.Tool != "" && r.ToolID != f.Tool,
		f.Event != "" && r.Event != f.Event,
		!f.Since.IsZero() && r.Time.Before(f.Since),
		!f.Until.IsZero() && !r.Time.Before(f.Until),
		f.Failed && r.OK,
		len(f.Errors) > 0 && !slices.Contains(f.Errors, r.ErrorType),
		f.Undelivered && (r.Delivered || r.Event != EventTool):
		return false
	}
	return true
}

// ParseTime reads RFC 3339, a day in UTC, or a duration before now, as in 2h or 3d; empty is the zero time. name is for
// the error.
func ParseTime(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, notNumber := strconv.ParseUint(days, 10, 16)
		ago, err = time.Duration(n)*24*time.Hour, notNumber
	}
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s is %q, but must be a time as in 2026-11-20T10:00:00Z, a day as in 2026-11-20, "+
			"or a duration before now as in 2h or 3d", name, text)
	}
	return now.Add(-ago), nil
}
