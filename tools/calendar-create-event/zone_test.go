package calendarcreateevent

import (
	"testing"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestLocalTimesAreTheUsers: a local time is in the user's zone, not in the calendar's or the gateway's, and an
// offset is respected.
func TestLocalTimesAreTheUsers(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ zone, start, end, utc, words, of string }{
		{"America/New_York", "2026-11-30T10:00:00", "2026-11-30T11:00:00", "2026-11-30T15:00:00.000Z", "Mon 30 Nov 2026 10:00-11:00", "America/New_York"},
		{"America/New_York", "2026-11-30T10:00", "2026-11-30t11:00", "2026-11-30T15:00:00.000Z", "Mon 30 Nov 2026 10:00-11:00", "America/New_York"},
		{"Asia/Kolkata", "2026-11-30T10:00:00Z", "2026-11-30T11:00:00+00:00", "2026-11-30T10:00:00.000Z", "Mon 30 Nov 2026 15:30-16:30", "Asia/Kolkata"},
		{"", "2026-11-30T10:00:00", "2026-11-30T11:00:00", "2026-11-30T09:00:00.000Z", "Mon 30 Nov 2026 10:00-11:00", "Europe/Berlin"},
	} {
		a := args()
		a.StartTime, a.EndTime = tt.start, tt.end
		result, err := Execute(t.Context(), registry.Call[Args, Needs]{
			Args: a, Needs: Needs{Calendar: calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{Zone: berlin})},
			Session: registry.Session{Mode: spec.ModeText, UserID: "ada", Now: now, TimeZone: tt.zone},
		})
		if err != nil {
			t.Errorf("%s in %q: %v", tt.start, tt.zone, err)
			continue
		}
		if got := result.Data.(Answer); got.Start != tt.utc || got.Words != tt.words || got.TimeZone != tt.of {
			t.Errorf("%s in %q is %s, %s in %s; want %s, %s in %s", tt.start, tt.zone, got.Start, got.Words, got.TimeZone, tt.utc, tt.words, tt.of)
		}
	}
}
