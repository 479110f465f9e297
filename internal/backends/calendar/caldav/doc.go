// Package caldav keeps calendars on a CalDAV server (RFC 4791): Radicale, Nextcloud, Fastmail and
// the like. It finds a user's calendars from one address (RFC 6764), asks for the events of a
// range and expands their recurrences itself, because servers differ in how they do so. It
// creates an event under a name made from its key, with If-None-Match, so that any number of
// attempts make one event.
//
// Redirects are followed only within the server's host, with their method: the password goes
// nowhere else. If a server keeps a user's calendars on another host, configure that host's
// address.
package caldav
