package user

import (
	"strings"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Calcutta", "Etc/GMT+5"} {
		if found, err := LoadZone(name); err != nil || found.String() != name {
			t.Errorf("%s is %v, %v", name, found, err)
		}
	}
	for _, name := range []string{"", "Local", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "+01:00", "Europe/Berlin\n", strings.Repeat("a", 65)} {
		if found, err := LoadZone(name); err == nil {
			t.Errorf("%q is the zone %v", name, found)
		}
	}
	if found := ZoneOr("nowhere", time.UTC); found != time.UTC {
		t.Errorf("an unknown zone is %v", found)
	}
}

// TestHere: TZ decides if it is set, even if it names no zone of the database.
func TestHere(t *testing.T) {
	for _, tt := range []struct{ tz, want string }{
		{"TZ=Europe/Berlin", "Europe/Berlin"}, {"TZ=:America/New_York", "America/New_York"}, {"TZ=CET-1CEST", ""}, {"TZ=", ""}, {"TZ=Mars/Olympus", ""},
	} {
		if got := ZoneHere([]string{"HOME=/", tt.tz}); got != tt.want {
			t.Errorf("%s has the zone %q, want %q", tt.tz, got, tt.want)
		}
	}
}
