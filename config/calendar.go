package config

import (
	"net/mail"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"voicegw/config/setting"
	"voicegw/internal/user"
)

func (v validator) calendarBackend() {
	c := v.config.Calendar
	auto := c.Backend == CalendarAuto
	switch {
	case c.Backend == CalendarCalDAV && c.CalDAV.URL == "":
		v.wrong("calendar.caldav.url", "is missing; calendar.backend is caldav")
	case c.Backend == CalendarGoogle && c.Google.Credentials == "":
		v.wrong("calendar.google.credentials", "is missing; calendar.backend is google")
	case auto && c.CalDAV.URL != "" && c.Google.Credentials != "":
		v.bad("calendar.backend", "calendar.caldav.url and calendar.google.credentials are both set; choose with "+
			"calendar.backend, or remove one.")
	case auto && c.Folder != "" && c.Kind() != CalendarFolder:
		v.bad("calendar.backend", "calendar.folder is set, and %s is configured too; choose with "+
			"calendar.backend, or remove one.", c.Kind())
	}
}

func (v validator) calendarDetails() {
	c := v.config.Calendar
	if _, err := user.LoadZone(c.TimeZone); err != nil {
		v.wrong("calendar.time_zone", "must be a name such as Europe/Berlin or UTC, not %s", quote(c.TimeZone))
	}
	if a, err := mail.ParseAddress(c.Email); c.Email != "" && (err != nil || a.Address != c.Email) {
		v.wrong("calendar.email", "must be an e-mail address alone, such as ada@example.com, not %s", quote(c.Email))
	}
	if c.MeetingURL != "" {
		u, err := url.Parse(strings.ReplaceAll(c.MeetingURL, "{id}", "id"))
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(c.MeetingURL, " \r\n") {
			v.wrong("calendar.meeting_url", "must be a whole URL that begins with https:// and has no password in it, such as "+
				"https://meet.example.com/{id}")
		}
	}
}

func (v validator) calendarFolders() {
	c := v.config.Calendar
	if c.Kind() != CalendarFolder {
		return
	}
	for key, name := range map[string]string{"calendar.primary": c.Primary, "calendar.team": c.Team, "calendar.personal": c.Personal} {
		v.wrongIf(name != "" && (name == "." || name != path.Base(filepath.ToSlash(name)) || !filepath.IsLocal(name)), key,
			"must be the name of a folder below the calendars' folder, not %s", quote(name))
	}
}

// Calendar configures the calendar tools: a CalDAV server, Google Calendar or, if neither
// is configured, a folder of iCalendar files.
type Calendar struct {
	// `folder`, `caldav` or `google`; `auto` is the configured one, else the folder.
	Backend string `key:"backend" words:"auto,folder,caldav,google"`
	// Folder with `primary`, `team` and `personal`, one iCalendar file per event.
	Folder setting.Path `key:"folder" unset:"in data_dir" eg:"calendars"`
	// Calendar for new events: a folder's name, a CalDAV name or URL, or a Google id.
	Primary string `key:"primary" unset:"see there" eg:"Work"`
	// For `team`.
	Team string `key:"team" eg:"/calendars/team/"`
	// For `personal`.
	Personal string `key:"personal" eg:"Home"`
	// IANA time zone for whole days, and for users whose own zone is unknown.
	TimeZone string `key:"time_zone"`
	// The owner's address: organizes new events; declined ones are not busy. Without it CalDAV invites no one.
	Email string `key:"email" eg:"ada@example.com"`
	// Meeting link if the calendar makes none; `{id}` becomes unique.
	MeetingURL string `key:"meeting_url" eg:"https://meet.example.com/{id}"`
	CalDAV     CalDAV `key:"caldav"`
	Google     Google `key:"google"`
}

// CalDAV is a calendar server.
type CalDAV struct {
	// CalDAV server: `https://dav.example.com`.
	URL string `key:"url" is:"url" eg:"https://dav.example.com"`
	// User.
	User string `key:"user" needs:"url" eg:"ada"`
	// Password, best an app password: printable ASCII without spaces.
	Password setting.Secret `key:"password" needs:"url,user" eg:"an-app-password"`
}

// Google is a Google Calendar account.
type Google struct {
	// JSON file of a service account or authorized user.
	Credentials setting.Path `key:"credentials" eg:"service-account.json"`
	// User a service account acts for (domain-wide delegation).
	Subject string `key:"subject" needs:"credentials" eg:"ada@example.com"`
	// Another address, with `/calendar/v3`.
	BaseURL string `key:"base_url" is:"url" needs:"credentials" unset:"Google's" eg:"https://www.googleapis.com/calendar/v3"`
}

// The values of Calendar.Backend.
const (
	CalendarAuto   = "auto" // the one that is configured
	CalendarFolder = "folder"
	CalendarCalDAV = "caldav"
	CalendarGoogle = "google"
)

// Kind returns the backend in use: never auto.
func (c Calendar) Kind() string {
	switch {
	case c.Backend != CalendarAuto:
		return c.Backend
	case c.CalDAV.URL != "":
		return CalendarCalDAV
	case c.Google.Credentials != "":
		return CalendarGoogle
	default:
		return CalendarFolder
	}
}
