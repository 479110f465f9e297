package calendar

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/user"
)

// DeskOptions configure a [Desk].
type DeskOptions struct {
	// Zone is for users whose own is unknown; nil means UTC.
	Zone *time.Location
	// MeetingURL is the link to video meetings for a backend that makes none. Each event replaces "{id}" in it by
	// letters and digits of its own. Empty means no link.
	MeetingURL string
	// Logger may be nil.
	Logger *slog.Logger
}

// Desk queries calendars and creates events for tools.
type Desk struct {
	// Fixed after NewDesk.
	calendar Calendar
	options  DeskOptions
}

// NewDesk makes a desk over a backend.
func NewDesk(c Calendar, o DeskOptions) *Desk {
	o.Zone = cmp.Or(o.Zone, time.UTC)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Desk{calendar: c, options: o}
}

// Zone returns the zone with the user's IANA name; if that is empty or unknown, the desk's.
func (d *Desk) Zone(users string) *time.Location { return user.ZoneOr(users, d.options.Zone) }

// Request is a question about free time.
type Request struct {
	From, To time.Time
	// Calendars are the names to query; empty means the primary one.
	Calendars []Name
	// Details requests the events of the busy periods.
	Details bool
	// Least is the minimum length of free time.
	Least time.Duration
	// Zone is the zone of Availability.Summary; nil means the desk's.
	Zone *time.Location
}

// Availability is the answer to a [Request].
type Availability struct {
	// Busy is merged over all calendars; Free is the time between. Both lie inside the request's range and are sorted.
	Busy, Free []Period
	// Events are the events of Busy, sorted by start; nil without Request.Details.
	Events []Event
	// Missing are the calendars whose query failed: Busy lacks their events.
	Missing []Missing
	// Unread is the number of events, or files of them, that could not be read.
	Unread int
	// Summary describes the answer in English, in the request's zone.
	Summary string
}

// Missing is a calendar whose query failed.
type Missing struct {
	Calendar Name
	Err      error
}

// Availability queries the calendars concurrently. If all queries fail, it returns the first one's error.
func (d *Desk) Availability(ctx context.Context, r Request) (Availability, error) {
	switch {
	case !r.To.After(r.From):
		return Availability{}, Errorf(Invalid, nil, "The range ends before it begins.")
	case r.To.Sub(r.From) > MaxRange:
		return Availability{}, Errorf(Invalid, nil, "The range is longer than 31 days.")
	}
	names := unique(r.Calendars)
	if len(names) == 0 {
		names = []Name{Primary}
	}
	found, errs := d.ask(ctx, r, names)
	if errors.Is(ctx.Err(), context.Canceled) {
		return Availability{}, ctx.Err()
	}
	a := Availability{}
	within := Period{r.From, r.To}
	var periods []Period
	for i, name := range names {
		if errs[i] != nil {
			d.options.Logger.Warn("a calendar query failed", "calendar", string(name), "error", errs[i])
			a.Missing = append(a.Missing, Missing{name, errs[i]})
			continue
		}
		a.Unread += len(found[i].Unread)
		for _, u := range found[i].Unread {
			d.options.Logger.Warn("an event cannot be read; its time counts as free", "calendar", string(name),
				"event", u.ID, "error", u.Err)
		}
		for _, e := range found[i].Events {
			p := Period{e.Start, e.End}
			if !p.Overlaps(within) {
				continue
			}
			periods = append(periods, p)
			if r.Details {
				e.Calendar = name
				a.Events = append(a.Events, e.withoutPrivate())
			}
		}
	}
	if len(a.Missing) == len(names) {
		return Availability{}, a.Missing[0].Err
	}
	slices.SortFunc(a.Events, func(a, b Event) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), strings.Compare(a.Title, b.Title), strings.Compare(a.ID, b.ID))
	})
	a.Busy = merge(periods, within)
	a.Free = gaps(a.Busy, within, r.Least)
	a.Summary = summary(a, within, r.Least, cmp.Or(r.Zone, d.options.Zone))
	return a, nil
}

// ask queries the calendars concurrently. It leaves time to answer, so that a calendar that hangs does not lose the
// answers of the others.
func (d *Desk) ask(ctx context.Context, r Request, names []Name) ([]Found, []error) {
	ctx, cancel := part(ctx, 9, 10)
	defer cancel()
	found, errs := make([]Found, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			var err error
			found[i], err = d.calendar.Busy(ctx, Query{Calendar: name, From: r.From, To: r.To, Details: r.Details})
			errs[i] = inTime(err)
		})
	}
	all.Wait()
	return found, errs
}

func (e Event) withoutPrivate() Event {
	if e.Private {
		e.Title, e.Description, e.Location, e.MeetingURL, e.Attendees = "", "", "", "", nil
	}
	return e
}

func unique(names []Name) []Name {
	var once []Name
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

var errNoCalendar = errors.New("nothing is configured for this name")

// NoCalendar is the error for a name that is not configured.
func NoCalendar(name Name) *Error {
	return Errorf(NotFound, errNoCalendar, "There is no %s calendar.", name)
}
