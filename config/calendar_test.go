package config

import (
	"strings"
	"testing"
)

func TestCalendar(t *testing.T) {
	c := mustLoad(t, `
calendar:
  team: https://dav.example.com/team/
  time_zone: Europe/Berlin
  email: ada@example.com
  meeting_url: https://meet.example.com/{id}
  caldav: {url: https://dav.example.com, user: ada}
`, []string{"VOICEGW_CALENDAR_CALDAV_PASSWORD=hunter-2"}).Calendar
	if c.CalDAV.Password.Reveal() != "hunter-2" || c.Kind() != CalendarCalDAV || c.TimeZone != "Europe/Berlin" || c.Team != "https://dav.example.com/team/" {
		t.Errorf("got %+v", c)
	}
	c = mustLoad(t, "calendar: {google: {credentials: key.json, subject: ada@example.com}}", nil).Calendar
	if c.Kind() != CalendarGoogle || c.Google.Credentials != "dir/key.json" {
		t.Errorf("got %+v", c)
	}
	c = mustLoad(t, "calendar: {folder: mine, team: all}", nil).Calendar
	if c.Kind() != CalendarFolder || c.Folder != "dir/mine" || c.TimeZone != "UTC" {
		t.Errorf("got %+v", c)
	}
}

// TestCalendarProblems: each problem is reported where it can be fixed, without passwords.
func TestCalendarProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []string
		where    string
		want     string
	}{
		"only a user":           {[]string{"calendar.caldav.user=ada"}, "VOICEGW_CALENDAR_CALDAV_URL", "missing"},
		"a password alone":      {[]string{"calendar.caldav.url=https://a.example", "calendar.caldav.password=secret"}, "VOICEGW_CALENDAR_CALDAV_USER", "missing"},
		"a password in the URL": {[]string{"calendar.caldav.url=https://u:secret@a.example"}, "--set", "password"},
		"no URL":                {[]string{"calendar.caldav.url=a.example"}, "--set", "whole URL"},
		"a subject alone":       {[]string{"calendar.google.subject=ada@example.com"}, "VOICEGW_CALENDAR_GOOGLE_CREDENTIALS", "missing"},
		"two backends":          {[]string{"calendar.caldav.url=https://a.example", "calendar.google.credentials=k.json"}, "VOICEGW_CALENDAR_BACKEND", "both"},
		"a folder as well":      {[]string{"calendar.caldav.url=https://a.example", "calendar.folder=x"}, "VOICEGW_CALENDAR_BACKEND", "remove one"},
		"another backend":       {[]string{"calendar.backend=outlook"}, "--set", "one of"},
		"a server without URL":  {[]string{"calendar.backend=caldav"}, "VOICEGW_CALENDAR_CALDAV_URL", "missing"},
		"Google without a key":  {[]string{"calendar.backend=google"}, "VOICEGW_CALENDAR_GOOGLE_CREDENTIALS", "missing"},
		"no zone":               {[]string{"calendar.time_zone=Mars/Olympus"}, "--set", "Europe/Berlin"},
		"the machine's zone":    {[]string{"calendar.time_zone=Local"}, "--set", "Europe/Berlin"},
		"no address":            {[]string{"calendar.email=Ada <ada@example.com>"}, "--set", "alone"},
		"no link":               {[]string{"calendar.meeting_url=meet.example.com"}, "--set", "whole URL"},
		"a link with password":  {[]string{"calendar.meeting_url=https://u:secret@meet.example.com"}, "--set", "password"},
		"out of the folder":     {[]string{"calendar.team=../other"}, "--set", "folder"},
	} {
		t.Run(name, func(t *testing.T) {
			var flags []Flag
			for _, s := range tc.settings {
				key, value, _ := strings.Cut(s, "=")
				flags = append(flags, Flag{"--set", key, value})
			}
			_, _, err := Load(Source{Flags: flags})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.where) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s at %s", err, tc.want, tc.where)
			}
		})
	}
}
