// Package calendar says when somebody is free and puts events into a calendar, wherever it is
// kept: in an iCalendar folder (ics.Folder), on a CalDAV server (calendar/caldav) or at
// Google Calendar (calendar/google). [Calendar] is the interface of such a backend; [Desk] is
// what tools work with: it asks several calendars at once, merges overlapping events, finds the
// free time between them and describes it in words.
//
// A busy period is half open: it includes its start and not its end, so that a meeting until ten
// and one from ten on follow each other without a gap and do not overlap.
//
// Everything here may be used concurrently.
package calendar
