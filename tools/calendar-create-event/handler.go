// Package calendarcreateevent is the tool calendar_create_event: it puts an event into
// the primary calendar.
package calendarcreateevent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"voicegw/calendar"
	"voicegw/calendar/reply"
	"voicegw/registry"
)

// Needs are the capabilities of calendar_create_event.
type Needs struct {
	Desk *calendar.Desk
}

// Answer is the data of a success.
type Answer struct {
	// Created is false for an event that was there already.
	Created bool   `json:"created"`
	ID      string `json:"id"`
	Title   string `json:"title"`
	Start   string `json:"start"`
	End     string `json:"end"`
	// Words are the time in the zone TimeZone.
	Words    string `json:"words"`
	TimeZone string `json:"time_zone"`
	// Attendees and Invitations are of the event as it is now.
	Attendees   []string             `json:"attendees"`
	Invitations calendar.Invitations `json:"invitations"`
	// InvalidAttendees were left out.
	InvalidAttendees []string `json:"invalid_attendees,omitempty"`
	MeetingURL       string   `json:"meeting_url,omitempty"`
	// MeetingNote says why there is no link although one was asked for.
	MeetingNote string `json:"meeting_note,omitempty"`
}

// Execute makes the event.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	draft, invalid, err := draftOf(call.Args, call.Session)
	if err != nil {
		return registry.Result{}, err
	}
	desk := call.Needs.Desk
	e, created, err := desk.Create(ctx, draft)
	if err != nil {
		return registry.Result{}, reply.Error(ctx, err)
	}
	answer := Answer{
		Created: created, ID: e.ID, Title: e.Title, Start: reply.Time(e.Start), End: reply.Time(e.End),
		Words: calendar.Words(calendar.Period{Start: e.Start, End: e.End}, desk.Zone()), TimeZone: desk.Zone().String(),
		Attendees: append([]string{}, e.Attendees...), Invitations: e.Invitations, InvalidAttendees: invalid, MeetingURL: e.MeetingURL,
	}
	if draft.Meeting && e.MeetingURL == "" {
		answer.MeetingNote = noLink(e, created)
	}
	return registry.Result{Data: answer}, nil
}

func noLink(e calendar.Event, created bool) string {
	switch {
	case e.MeetingPending:
		return "The link is being made; it will be in the calendar in a moment."
	case !created:
		return "The event was there already and has no link."
	default:
		return "No link could be made: this calendar has no video service. The event was made without one."
	}
}

// draftOf reads the arguments, and lists the attendees that it leaves out. All that is
// wrong is named at once.
func draftOf(args Args, session registry.Session) (draft calendar.Draft, invalid []string, err error) {
	var problems []registry.Problem
	bad := func(path, format string, a ...any) {
		problems = append(problems, registry.Problem{Path: path, Message: fmt.Sprintf(format, a...)})
	}
	const form = "Write it as 2026-11-23T09:00:00+01:00."
	draft = calendar.Draft{Title: strings.TrimSpace(args.Title), Meeting: args.IncludeZoomLink, Now: session.Now}
	var startErr, endErr error
	if draft.Start, startErr = time.Parse(time.RFC3339, args.StartTime); startErr != nil {
		bad("/start_time", form)
	}
	if draft.End, endErr = time.Parse(time.RFC3339, args.EndTime); endErr != nil {
		bad("/end_time", form)
	}
	if args.Description != nil {
		draft.Description = *args.Description
	}
	if draft.Title == "" {
		bad("/title", "The title is blank.")
	}
	if startErr == nil && endErr == nil {
		switch {
		case !draft.End.After(draft.Start):
			bad("/end_time", "The event ends before it begins.")
		case draft.End.Sub(draft.Start) > calendar.MaxLength:
			bad("/end_time", "The event lasts %d days; at most 31 are possible.", int(draft.End.Sub(draft.Start).Hours()/24))
		case draft.End.Before(session.Now):
			bad("/start_time", "The event is over already: it is %s now. Check the year.", reply.Time(session.Now))
		}
	}
	draft.Attendees, invalid = calendar.Addresses(args.Attendees)
	if len(args.Attendees) > 0 && len(draft.Attendees) == 0 {
		for i, a := range args.Attendees {
			bad(fmt.Sprintf("/attendees/%d", i), "%q is no e-mail address.", a)
		}
	}
	if len(problems) > 0 {
		e := registry.Errorf(registry.ErrorValidation, "The event cannot be made: %s", problems[0].Message)
		e.Details = map[string]any{"errors": problems}
		e.Suggestion = "Correct the arguments and call calendar_create_event again."
		return draft, nil, e
	}
	draft.Key = calendar.Key(session.UserID, draft.Title, draft.Start, draft.End)
	return draft, invalid, nil
}
