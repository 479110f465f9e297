// Package google keeps calendars at Google, over the REST interface of Calendar API
// v3 (developers.google.com/workspace/calendar/api/v3/reference, read 2026-11-20):
// freeBusy.query for times alone, events.list with singleEvents for details,
// events.insert with an id made of the event's key and with conferenceData.
//
// It acts as a service account (which sees the calendars that are shared with it, or
// by domain-wide delegation those of a user) or as a user who has authorized it.
package google
