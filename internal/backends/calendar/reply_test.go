package calendar

import (
	"testing"
	"time"
)

// TestFormatTime: a time that RFC 3339 cannot write gets a valid form too.
func TestFormatTime(t *testing.T) {
	for want, at := range map[string]time.Time{
		"2026-11-23T08:00:00.005Z": time.Date(2026, 11, 23, 9, 0, 0, 5_900_000, time.FixedZone("", 3600)),
		"0000-01-01T00:00:00.000Z": time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)),
		"9999-12-31T23:59:59.999Z": time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600)),
	} {
		if got := FormatTime(at); got != want {
			t.Errorf("%v is %s, want %s", at, got, want)
		}
	}
}
