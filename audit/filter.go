package audit

import (
	"slices"
	"strings"
	"time"

	"voicegw/registry"
)

// Filter chooses records. A field that is zero lets every record pass; those that
// are set must all agree.
type Filter struct {
	// Session is the session's id, or how it begins.
	Session string
	User    string
	Tool    string
	Event   Event
	// Since is the earliest time that passes, Until the first that does not.
	Since, Until time.Time
	// Failed passes what was not OK.
	Failed bool
	// Errors passes what failed with one of these types.
	Errors []registry.ErrorType
	// Undelivered passes calls whose answer the model was not given.
	Undelivered bool
}

// Match says whether a record passes.
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
