// Package calendar finds free time and creates events. The backends of [Calendar] are iCalendar folders (package ics),
// CalDAV servers (package caldav) and Google Calendar (package google). Tools use a [Desk]: it queries several
// calendars at once, merges overlapping events, finds the free time between them and describes it in English.
//
// A period is half open: it includes its start but not its end, so a meeting until ten and a meeting from ten do not
// overlap.
//
// Everything here may be used concurrently.
package calendar
