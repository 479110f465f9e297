package config

import "voicegw/config/setting"

// Calendar configures the calendar tools: a CalDAV server, Google Calendar or, if neither
// is configured, a folder of iCalendar files.
type Calendar struct {
	// Backend is auto, folder, caldav or google; see [Calendar.Kind].
	Backend string `key:"backend" words:"auto,folder,caldav,google"`
	// Folder contains a folder for each calendar; empty means the folder calendar below the data
	// folder.
	Folder setting.Path `key:"folder"`
	// Primary, Team and Personal say which calendar each of these names means, in a form that
	// depends on the
	Primary  string `key:"primary"`
	Team     string `key:"team"`
	Personal string `key:"personal"`
	// TimeZone is the IANA name of the time zone of days, of times without a zone, and of
	// spoken times.
	TimeZone string `key:"time_zone"`
	// Email is the address of the calendars' owner.
	Email string `key:"email"`
	// MeetingURL is the link of video meetings if the calendar creates none; "{id}" in it is
	// replaced by a different id for each event.
	MeetingURL string `key:"meeting_url"`
	CalDAV     CalDAV `key:"caldav"`
	Google     Google `key:"google"`
}

// CalDAV is a calendar server.
type CalDAV struct {
	URL      string         `key:"url" is:"url"`
	User     string         `key:"user"`
	Password setting.Secret `key:"password"`
}

// Google is a Google Calendar account.
type Google struct {
	// Credentials is the JSON file of a service account or of an authorized user.
	Credentials setting.Path `key:"credentials"`
	// Subject is the user for whom a service account acts.
	Subject string `key:"subject"`
	// BaseURL is the address of the API; empty means Google's own.
	BaseURL string `key:"base_url" is:"url"`
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
