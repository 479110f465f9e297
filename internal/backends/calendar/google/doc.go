// Package google uses Google Calendar, by the REST interface of Calendar API v3
// (developers.google.com/workspace/calendar/api/v3/reference, read 2026-11-20): freeBusy.query for times alone,
// events.list with singleEvents for details, events.insert with the event's key as id and with conferenceData.
//
// It acts as a user who has authorized it, or as a service account, which sees the calendars that are shared with it
// or, by domain-wide delegation, a user's.
package google
