package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestEvent(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC) // a Friday
	for text, want := range map[string]string{
		"Book a meeting tomorrow at 10":                        "Book meeting on 2026-11-21 from 10:00 to 11:00",
		"Please schedule lunch with Ada today at noon.":        "Book lunch with Ada on 2026-11-20 from 12:00 to 13:00",
		"Book a call at 3 pm":                                  "Book call on 2026-11-20 from 15:00 to 16:00",
		"Book a call at 3":                                     "Book call on 2026-11-20 from 15:00 to 16:00",
		"book a call at three o'clock":                         "Book call on 2026-11-20 from 15:00 to 16:00",
		"Plan a review on Monday at 15:30 for half an hour":    "Book review on 2026-11-23 from 15:30 to 16:00",
		"Set up the review next Friday at 9 for two hours":     "Book review on 2026-11-27 from 09:00 to 11:00",
		"Create an event the day after tomorrow from 11 to 1":  "Book event on 2026-11-22 from 11:00 to 13:00",
		"Could you book dinner on 2026-12-01 at 7:30 p.m.?":    "Book dinner on 2026-12-01 from 19:30 to 20:30",
		"Book a demo tomorrow at 10 with ada@example.com":      "Book demo on 2026-11-21 from 10:00 to 11:00 with ada@example.com",
		"Book a party tonight at 11 pm for 3 hours":            "Book party on 2026-11-20 from 23:00 to 23:59",
		"Book a meeting tomorrow":                              noTime,
		"Book a meeting at 25:00":                              noTime,
		"Schedule a stand-up tomorrow at 08:00 for 15 minutes": "Book stand-up on 2026-11-21 from 08:00 to 08:15",
		"Arrange a walk on saturday from 2 until 4":            "Book walk on 2026-11-21 from 14:00 to 16:00",
	} {
		if got := event(text, now); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// FuzzEvent: any text gives a full request or noTime.
func FuzzEvent(f *testing.F) {
	f.Add("Book a meeting tomorrow at 10")
	f.Fuzz(func(t *testing.T, text string) {
		got := event(text, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))
		if got != noTime && !strings.HasPrefix(got, "Book ") {
			t.Errorf("%q gives %q", text, got)
		}
	})
}
