// Package calendarcreateevent implements the tool calendar_create_event.
package calendarcreateevent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of calendar_create_event.
type Needs struct {
	Calendar *calendar.Scheduler
}

// Answer is the data of a success.
type Answer struct {
	// Created is false if the event existed already.
	Created bool   `json:"created"`
	ID      string `json:"id"`
	Title   string `json:"title"`
	Start   string `json:"start"`
	End     string `json:"end"`
	// Words are the time as text in TimeZone.
	Words    string `json:"words"`
	TimeZone string `json:"time_zone"`
	// Attendees and Invitations describe the event as it is now.
	Attendees   []string             `json:"attendees"`
	Invitations calendar.Invitations `json:"invitations"`
	MeetingURL  string               `json:"meeting_url,omitempty"`
	// MeetingNote explains a missing link.
	MeetingNote string `json:"meeting_note,omitempty"`
	// Note reports that the event was looked up.
	Note string `json:"note,omitempty"`
}

// Check rejects an impossible event before a person is asked for approval.
func Check(_ context.Context, call registry.Call[Args, Needs]) error {
	_, err := draftOf(call.Args, call.Session, call.Needs.Calendar)
	return err
}

// Execute creates the event.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	scheduler, zone := call.Needs.Calendar, call.Needs.Calendar.Zone(call.Session.TimeZone)
	draft, err := draftOf(call.Args, call.Session, scheduler)
	if err != nil {
		return registry.Result{}, err
	}
	made, err := scheduler.Create(ctx, draft)
	if err != nil {
		return registry.Result{}, calendar.ToolError(ctx, err)
	}
	e, created := made.Event, made.Created
	answer := Answer{
		Created: created, ID: e.ID, Title: e.Title, Start: calendar.FormatTime(e.Start), End: calendar.FormatTime(e.End),
		Words: calendar.Words(calendar.Period{Start: e.Start, End: e.End}, zone), TimeZone: zone.String(),
		Attendees: append([]string{}, e.Attendees...), Invitations: e.Invitations, MeetingURL: e.MeetingURL,
	}
	if made.LookedUp {
		answer.Note = "The calendar did not confirm the event, but a lookup found it."
	}
	if draft.Meeting && e.MeetingURL == "" {
		answer.MeetingNote = noLink(e, created)
	}
	return registry.Result{Data: answer}, nil
}

func noLink(e calendar.Event, created bool) string {
	switch {
	case e.MeetingPending:
		return "The link is being created and will soon be in the calendar."
	case !created:
		return "The event already existed and has no link."
	default:
		return "This calendar has no video service. The event was created without a link."
	}
}

// places maps an event's fields to arguments.
var places = map[calendar.Field]string{
	calendar.FieldTitle: "/title", calendar.FieldStart: "/start_time", calendar.FieldEnd: "/end_time",
	calendar.FieldDescription: "/description", calendar.FieldAttendees: "/attendees",
}

// draftOf parses the arguments. Its error lists every problem.
func draftOf(args Args, session registry.Session, scheduler *calendar.Scheduler) (calendar.Draft, error) {
	var problems []document.Problem
	draft := calendar.Draft{Title: strings.TrimSpace(args.Title), Meeting: args.IncludeZoomLink, Now: session.Now}
	read := func(f calendar.Field, text string) time.Time {
		t, err := calendar.ParseTime(text, scheduler.Zone(session.TimeZone))
		if err != nil {
			problems = append(problems, document.Problem{Path: places[f], Message: "This is not a time; write it as 2026-11-23T09:00:00."})
		}
		return t
	}
	draft.Start, draft.End = read(calendar.FieldStart, args.StartTime), read(calendar.FieldEnd, args.EndTime)
	unreadable := len(problems) > 0
	if args.Description != nil {
		draft.Description = *args.Description
	}
	for i, a := range args.Attendees {
		switch a = calendar.Address(a); {
		case !calendar.IsAddress(a):
			problems = append(problems, document.Problem{Path: fmt.Sprintf("/attendees/%d", i),
				Message: fmt.Sprintf("%.100q is not an email address.", args.Attendees[i])})
		case !slices.ContainsFunc(draft.Attendees, func(known string) bool { return strings.EqualFold(known, a) }):
			draft.Attendees = append(draft.Attendees, a)
		}
	}
	for _, p := range draft.Problems() {
		if unreadable && (p.Field == calendar.FieldStart || p.Field == calendar.FieldEnd) {
			continue // an unknown time
		}
		problems = append(problems, document.Problem{Path: places[p.Field], Message: p.Message})
	}
	if len(problems) > 0 {
		e := registry.Invalid(problems, "The event cannot be created: %s", problems[0].Message)
		e.Suggestion = "No approval was requested and no event was created. Correct the arguments, or ask the user, and call " +
			"calendar_create_event again."
		return draft, e
	}
	draft.Key = calendar.Key(session.UserID, draft.Title, draft.Start, draft.End)
	return draft, nil
}
