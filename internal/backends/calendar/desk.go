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
	// Zone is the zone of times in words for users whose own is not known; nil means UTC.
	Zone *time.Location
	// MeetingURL is the link of video meetings for a backend that makes none itself. "{id}" in
	// it is replaced by letters and digits that no other event has. Empty means no link.
	MeetingURL string
	// Logger gets a line for each event that could not be read; nil means no logging.
	Logger *slog.Logger
}

// Desk is how tools query calendars and create events.
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

// Zone returns the zone in which a user's local times are read and times are put into words: the user's
// own by its IANA name or, if that is empty or unknown, the desk's.
func (d *Desk) Zone(users string) *time.Location { return user.ZoneOr(users, d.options.Zone) }

// Request asks when somebody is free.
type Request struct {
	From, To time.Time
	// Calendars to ask, each once; empty means the primary one.
	Calendars []Name
	// Details asks for the events behind the busy periods.
	Details bool
	// Least is the shortest free time that counts.
	Least time.Duration
	// Zone is the zone of Availability.Summary; nil means the desk's.
	Zone *time.Location
}

// Availability is the answer to a [Request].
type Availability struct {
	// Busy is merged over all calendars; Free is the time between. Both lie inside the
	// request's range and are sorted.
	Busy, Free []Period
	// Events are the events of Busy, sorted by start; nil unless details were asked for.
	Events []Event
	// Missing are the calendars that could not be asked: Busy lacks their events.
	Missing []Missing
	// Unread is how many events, or files of them, could not be read.
	Unread int
	// Summary describes the answer in words, in the request's zone.
	Summary string
}

// Missing is a calendar that could not be asked.
type Missing struct {
	Calendar Name
	Err      error
}

// Availability asks the calendars, all at once. The answer names calendars that could not be
// asked; if none could, the first one's error is returned.
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
			d.options.Logger.Warn("a calendar cannot be asked", "calendar", string(name), "error", errs[i])
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

// ask asks each calendar on a goroutine of its own and waits for all, but leaves time to answer:
// one that hangs does not lose the others' answers.
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

// errNoCalendar is wrapped by the error of a name that nothing stands behind.
var errNoCalendar = errors.New("nothing is configured for this name")

// NoCalendar is the error for a name that is not configured.
func NoCalendar(name Name) *Error {
	return Errorf(NotFound, errNoCalendar, "There is no %s calendar.", name)
}
