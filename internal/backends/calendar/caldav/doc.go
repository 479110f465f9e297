// Package caldav uses calendars on a CalDAV server (RFC 4791), such as Radicale, Nextcloud or Fastmail. It finds a
// user's calendars from one address (RFC 6764). It expands recurring events itself, because servers expand them
// differently. It creates an event under its key with If-None-Match, so any number of attempts make one event.
//
// It follows redirects only within the server's host, so that no other host gets the password. If the calendars are on
// another host, configure that host's address.
package caldav
