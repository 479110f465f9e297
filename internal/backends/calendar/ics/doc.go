// Package ics reads and writes iCalendar (RFC 5545) for the backends that keep it: [Folder] and
// package caldav. It reads files
// of strangers: whatever they contain, it neither panics nor runs without end, and it reports
// what it cannot read instead of taking it for free time.
//
// How recurring events are read: the rule runs on the wall clock of the event's zone, so that a
// meeting at nine stays at nine when the clocks change. DTSTART is always the first occurrence.
// EXDATE removes occurrences, RDATE adds some, RECURRENCE-ID replaces one, or with
// RANGE=THISANDFUTURE it and all after it. A time that the clocks skip is an hour later, and of
// one that comes twice the first counts (RFC 5545 section 3.3.5).
//
// Zones are found by their IANA name (also behind the prefixes of some programs), otherwise by
// the VTIMEZONE in the file, which Outlook relies on.
package ics
