package audit

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"2h":                        "2026-11-20T08:00:00Z",
		"90m":                       "2026-11-20T08:30:00Z",
		"3d":                        "2026-11-17T10:00:00Z",
		"0s":                        "2026-11-20T10:00:00Z",
		"2026-11-19":                "2026-11-19T00:00:00Z",
		"2026-11-20T09:00:00.5Z":    "2026-11-20T09:00:00.5Z",
		"2026-11-20T09:00:00+02:00": "2026-11-20T07:00:00Z",
	} {
		if got, err := ParseTime("--since", text, now); err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "d", "-1d", "99999d", "2026-11-20 09:00", "5"} {
		if got, err := ParseTime("--since", text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
