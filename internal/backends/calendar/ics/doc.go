// Package ics reads and writes iCalendar (RFC 5545) for package caldav and for [Folder], a backend of iCalendar files.
// It reads files of strangers safely: it bounds time and memory, and it reports unreadable events, because their time
// is not free.
//
// A recurrence rule uses the wall clock of the event's zone, so a meeting at nine stays at nine when the clocks change.
// DTSTART is always the first occurrence. EXDATE removes occurrences, RDATE adds some, RECURRENCE-ID replaces one or,
// with RANGE=THISANDFUTURE, it and all later ones. A time that the clocks skip is an hour later; a time that occurs
// twice is the first one (RFC 5545 section 3.3.5).
//
// A zone's IANA name, also with the prefixes of some programs, has priority over the VTIMEZONE in the file, which
// Outlook relies on.
package ics
