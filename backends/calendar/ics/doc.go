// Package ics reads and writes iCalendar (RFC 5545) for the backends that keep it. It
// reads what strangers wrote: anything may be in there, nothing makes it panic or run
// without end, and what is not understood is said instead of being taken for free
// time.
//
// How recurring events are read: the rule runs on the wall clock of the event's zone,
// so that a meeting at nine stays at nine when the clocks change. DTSTART is always the
// first occurrence. EXDATE takes occurrences out, RDATE puts some in, RECURRENCE-ID
// replaces one, or with RANGE=THISANDFUTURE all from there on. A time that the clocks
// skip is an hour later, one that comes twice is the first (RFC 5545 section 3.3.5).
//
// Zones are found by their IANA name (also behind the prefixes that some programs put
// in front), else by the VTIMEZONE that comes along, which is how Outlook names its
// zones.
package ics
