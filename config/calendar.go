package config

import (
	"net/mail"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"voicegw/internal/user"
)

func (v validator) validateCalendar() {
	c := v.config.Calendar
	v.needs([]need{
		{c.CalDAV.User, "calendar.caldav.url", c.CalDAV.URL},
		{c.CalDAV.Password.Reveal(), "calendar.caldav.url", c.CalDAV.URL},
		{c.CalDAV.Password.Reveal(), "calendar.caldav.user", c.CalDAV.User},
		{c.Google.Subject, "calendar.google.credentials", string(c.Google.Credentials)},
		{c.Google.BaseURL, "calendar.google.credentials", string(c.Google.Credentials)},
	})
	v.calendarBackend()
	v.calendarDetails()
	v.calendarFolders()
}

// calendarBackend checks the choice of a backend and its configuration.
func (v validator) calendarBackend() {
	c := v.config.Calendar
	auto := c.Backend == CalendarAuto
	switch {
	case c.Backend == CalendarCalDAV && c.CalDAV.URL == "":
		v.bad("calendar.caldav.url", "calendar.caldav.url is missing; calendar.backend is caldav.")
	case c.Backend == CalendarGoogle && c.Google.Credentials == "":
		v.bad("calendar.google.credentials", "calendar.google.credentials is missing; calendar.backend is google.")
	case auto && c.CalDAV.URL != "" && c.Google.Credentials != "":
		v.bad("calendar.backend", "calendar.caldav.url and calendar.google.credentials are both set; choose with "+
			"calendar.backend, or remove one.")
	case auto && c.Folder != "" && c.Kind() != CalendarFolder:
		v.bad("calendar.backend", "calendar.folder is set, and %s is configured too; choose with "+
			"calendar.backend, or remove one.", c.Kind())
	}
}

// calendarDetails checks the settings that every backend uses.
func (v validator) calendarDetails() {
	c := v.config.Calendar
	if _, err := user.LoadZone(c.TimeZone); err != nil {
		v.bad("calendar.time_zone", "calendar.time_zone must be a name such as Europe/Berlin or UTC, not %s.", quote(c.TimeZone))
	}
	if a, err := mail.ParseAddress(c.Email); c.Email != "" && (err != nil || a.Address != c.Email) {
		v.bad("calendar.email", "calendar.email must be an e-mail address alone, such as ada@example.com, not %s.", quote(c.Email))
	}
	if c.MeetingURL != "" {
		u, err := url.Parse(strings.ReplaceAll(c.MeetingURL, "{id}", "id"))
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(c.MeetingURL, " \r\n") {
			v.bad("calendar.meeting_url", "calendar.meeting_url must be a whole URL that begins with https:// and has no "+
				"password in it, such as https://meet.example.com/{id}.")
		}
	}
}

// calendarFolders checks calendar names that are also the names of folders.
func (v validator) calendarFolders() {
	c := v.config.Calendar
	if c.Kind() != CalendarFolder {
		return
	}
	for key, name := range map[string]string{"calendar.primary": c.Primary, "calendar.team": c.Team, "calendar.personal": c.Personal} {
		if name != "" && (name == "." || name != path.Base(filepath.ToSlash(name)) || !filepath.IsLocal(name)) {
			v.bad(key, "%s must be the name of a folder below the calendars' folder, not %s.", key, quote(name))
		}
	}
}
