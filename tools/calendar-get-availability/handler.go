// Package calendargetavailability implements the tool calendar_get_availability.
package calendargetavailability

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/backends/calendar"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of calendar_get_availability.
type Needs struct {
	Calendar *calendar.Scheduler
}

// Answer is the data of a success.
type Answer struct {
	Summary string `json:"summary"`
	// TimeZone is the IANA name of the time zone of Summary and Words.
	TimeZone string `json:"time_zone"`
	// Busy is merged over all calendars. Free is the time between. Both are sorted and never nil.
	Busy []calendar.PeriodReply `json:"busy"`
	Free []calendar.PeriodReply `json:"free"`
	// Events are set only if details were requested.
	Events []Event `json:"events,omitempty"`
	// MoreBusy, MoreFree and MoreEvents count omitted entries.
	MoreBusy   int       `json:"more_busy,omitempty"`
	MoreFree   int       `json:"more_free,omitempty"`
	MoreEvents int       `json:"more_events,omitempty"`
	Missing    []Missing `json:"missing_calendars,omitempty"`
	// Unread counts unreadable entries.
	Unread int `json:"unread_events,omitempty"`
}

// Event is an event of an answer.
type Event struct {
	Title      string   `json:"title"`
	Start      string   `json:"start"`
	End        string   `json:"end"`
	Words      string   `json:"words"`
	Calendar   string   `json:"calendar"`
	AllDay     bool     `json:"all_day,omitempty"`
	Tentative  bool     `json:"tentative,omitempty"`
	Private    bool     `json:"private,omitempty"`
	Location   string   `json:"location,omitempty"`
	MeetingURL string   `json:"meeting_url,omitempty"`
	Attendees  []string `json:"attendees,omitempty"`
}

// Missing is a calendar that could not be read.
type Missing struct {
	Calendar string             `json:"calendar"`
	Type     registry.ErrorType `json:"type"`
	Reason   string             `json:"reason"`
}

const (
	// maxPeriods and maxEvents bound the lists, because models ignore parts of long ones.
	maxPeriods, maxEvents = 100, 100
	// maxAttendees limits the people of an event.
	maxAttendees = 10
)

// Execute queries the calendars.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	request, err := requestOf(call.Args, call.Needs.Calendar.Zone(call.Session.TimeZone))
	if err != nil {
		return registry.Result{}, err
	}
	scheduler := call.Needs.Calendar
	found, err := scheduler.Availability(ctx, request)
	if err != nil {
		return registry.Result{}, calendar.ToolError(ctx, err)
	}
	answer := Answer{
		Summary: found.Summary, TimeZone: request.Zone.String(),
		Busy:     calendar.PeriodReplies(found.Busy, maxPeriods, request.Zone),
		Free:     calendar.PeriodReplies(found.Free, maxPeriods, request.Zone),
		MoreBusy: max(0, len(found.Busy)-maxPeriods), MoreFree: max(0, len(found.Free)-maxPeriods),
		MoreEvents: max(0, len(found.Events)-maxEvents), Unread: found.Unread,
	}
	if len(call.Invalid) > 0 { // only calendars is a list; events of an unknown calendar are missing in the busy times
		answer.Summary += " Calendars with invalid names were not checked."
	}
	for _, e := range found.Events[:min(maxEvents, len(found.Events))] {
		answer.Events = append(answer.Events, eventOf(e, request.Zone))
	}
	for _, m := range found.Missing {
		answer.Missing = append(answer.Missing, missingOf(ctx, m))
	}
	return registry.Result{Data: answer}, nil
}

// requestOf parses the arguments and checks how they fit together. The schema has checked each one.
func requestOf(args Args, zone *time.Location) (calendar.Request, error) {
	from, err1 := calendar.ParseTime(args.StartDate, zone)
	to, err2 := calendar.ParseTime(args.EndDate, zone)
	var problems []document.Problem
	bad := func(path, format string, a ...any) {
		problems = append(problems, document.Problem{Path: path, Message: fmt.Sprintf(format, a...)})
	}
	const form = "Write it as 2026-11-23T09:00:00."
	if err1 != nil {
		bad("/start_date", form)
	}
	if err2 != nil {
		bad("/end_date", form)
	}
	switch {
	case len(problems) > 0:
	case !to.After(from):
		bad("/end_date", "The range ends before it starts; swap start_date and end_date, or give a later end_date.")
	case to.Sub(from) > calendar.MaxRange:
		bad("/end_date", "The range is %d days long; ask for at most 31.", int(to.Sub(from).Hours()/24))
	}
	if len(problems) > 0 {
		e := registry.Invalid(problems, "The calendars cannot be queried: %s", problems[0].Message)
		e.Suggestion = "Correct the arguments and call calendar_get_availability again."
		return calendar.Request{}, e
	}
	request := calendar.Request{From: from, To: to, Zone: zone, Details: args.IncludeDetails,
		Least: time.Duration(args.MinDurationMinutes) * time.Minute}
	for _, name := range args.Calendars {
		request.Calendars = append(request.Calendars, calendar.Name(name))
	}
	return request, nil
}

func eventOf(e calendar.Event, zone *time.Location) Event {
	title := e.Title
	if e.Private {
		title = "private"
	}
	return Event{
		Title: title, Start: calendar.FormatTime(e.Start), End: calendar.FormatTime(e.End),
		Words: calendar.Words(calendar.Period{Start: e.Start, End: e.End}, zone), Calendar: string(e.Calendar),
		AllDay: e.AllDay, Tentative: e.Tentative, Private: e.Private, Location: e.Location, MeetingURL: e.MeetingURL,
		Attendees: e.Attendees[:min(maxAttendees, len(e.Attendees))],
	}
}

// missingOf explains why a calendar could not be read, as a tool error.
func missingOf(ctx context.Context, m calendar.Missing) Missing {
	out := Missing{Calendar: string(m.Calendar), Type: registry.ErrorTransient, Reason: "It could not be read in time."}
	if e, ok := errors.AsType[*registry.ToolError](calendar.ToolError(ctx, m.Err)); ok {
		out.Type, out.Reason = e.Type, e.Message
	}
	return out
}
