// Package caldav keeps calendars on a CalDAV server (RFC 4791): Radicale, Nextcloud,
// Fastmail and the like. It finds a user's calendars from one address (RFC 6764),
// asks for the events of a range and expands their recurrences itself, since servers
// differ in how they do, and creates an event under a name made of its key with
// If-None-Match, so that of any number of tries one makes it.
//
// Redirects are followed within the server's host alone, with their method: the
// password goes nowhere else. A server that keeps a user's calendars on another host
// than its address has to be given by that other host's address.
package caldav
