// Package calendar answers when somebody is free and puts events into a calendar,
// whatever keeps it: an iCalendar folder (backends/calendar/folder), a CalDAV server
// (backends/calendar/caldav) or Google Calendar (backends/calendar/google). [Calendar] is what such a
// backend is; [Desk] is what tools work with: it asks several calendars at once,
// merges what overlaps, finds the free time between and says it in words.
//
// A busy period is half open: it holds its start and not its end, so that a meeting
// until ten and one from ten on follow each other without a gap and do not overlap.
//
// Everything here may be used from any number of goroutines at once.
package calendar
