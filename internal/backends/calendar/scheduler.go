package calendar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/textutil"
	"voicegw/internal/user"
)

// SchedulerOptions configure a [Scheduler].
type SchedulerOptions struct {
	Zone *time.Location // for users whose own is unknown; nil means UTC
	// MeetingURL is the link to video meetings for a backend that makes none. Each event replaces "{id}" in it by
	// letters and digits of its own. Empty means no link.
	MeetingURL string
	Logger     *slog.Logger // may be nil
}

// Scheduler queries calendars and creates events for tools.
type Scheduler struct {
	// Fixed after NewScheduler.
	calendar Calendar
	options  SchedulerOptions
}

// NewScheduler makes a Scheduler over a backend.
func NewScheduler(c Calendar, o SchedulerOptions) *Scheduler {
	o.Zone = cmp.Or(o.Zone, time.UTC)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Scheduler{calendar: c, options: o}
}

// Zone returns the zone with the user's IANA name; if that is empty or unknown, the Scheduler's.
func (d *Scheduler) Zone(users string) *time.Location { return user.ZoneOr(users, d.options.Zone) }

// Request is a question about free time.
type Request struct {
	From, To  time.Time
	Calendars []Name         // the names to query; empty means the primary one
	Details   bool           // requests the events of the busy periods
	Least     time.Duration  // the minimum length of free time
	Zone      *time.Location // the zone of Availability.Summary; nil means the Scheduler's
}

// Availability is the answer to a [Request].
type Availability struct {
	// Busy is merged over all calendars; Free is the time between. Both lie inside the request's range and are sorted.
	Busy, Free []Period
	Events     []Event   // the events of Busy, sorted by start; nil without Request.Details
	Missing    []Missing // the calendars whose query failed: Busy lacks their events
	Unread     int       // the number of events, or files of them, that could not be read
	Summary    string    // describes the answer in English, in the request's zone
}

// Missing is a calendar whose query failed.
type Missing struct {
	Calendar Name
	Err      error
}

// Availability queries the calendars concurrently. If all queries fail, it returns the first one's error.
func (d *Scheduler) Availability(ctx context.Context, r Request) (Availability, error) {
	switch {
	case !r.To.After(r.From):
		return Availability{}, Errorf(Invalid, nil, "The range ends before it begins.")
	case r.To.Sub(r.From) > MaxRange:
		return Availability{}, Errorf(Invalid, nil, "The range is longer than 31 days.")
	}
	names := textutil.Unique(r.Calendars)
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
func (d *Scheduler) ask(ctx context.Context, r Request, names []Name) ([]Found, []error) {
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

var errNoCalendar = errors.New("nothing is configured for this name")

// NoCalendar is the error for a name that is not configured.
func NoCalendar(name Name) *Error {
	return Errorf(NotFound, errNoCalendar, "There is no %s calendar.", name)
}

// Made is the result of [Scheduler.Create].
type Made struct {
	Event    Event
	Created  bool // false if the event existed already
	LookedUp bool // the calendar did not confirm the event, but a look-up found it
}

// Create makes an event, once for each key; see [Calendar]. A draft that requests a meeting gets the Scheduler's link if the
// backend makes none.
//
// If the backend's error is Unsure, Create looks the event up within the time of ctx. Its own error is Unsure only if
// that fails too: then the event may exist. Calling Create again is always safe.
func (d *Scheduler) Create(ctx context.Context, draft Draft) (Made, error) {
	if err := draft.Check(); err != nil {
		return Made{}, err
	}
	if draft.Meeting && draft.MeetingURL == "" {
		draft.MeetingURL = strings.ReplaceAll(d.options.MeetingURL, "{id}", draft.Key)
	}
	creating, cancel := part(ctx, 3, 5) // leaves time for a look-up and for the tool's answer
	defer cancel()
	e, created, err := d.calendar.Create(creating, draft)
	if err == nil {
		e.Calendar = Primary
		return Made{Event: e, Created: created}, nil
	}
	failed, ok := errors.AsType[*Error](inTime(err))
	if !ok || !failed.Unsure {
		return Made{}, inTime(err)
	}
	return d.lookUp(ctx, draft, failed)
}

func (d *Scheduler) lookUp(ctx context.Context, draft Draft, failed *Error) (Made, error) {
	ctx, cancel := part(ctx, 3, 4)
	defer cancel()
	e, found, err := d.calendar.Find(ctx, draft.Key)
	what := fmt.Sprintf("%q, %s (UID %s)", draft.Title, Words(Period{draft.Start, draft.End}, d.options.Zone), draft.Key)
	d.options.Logger.Warn("a calendar has not confirmed an event, so it was looked up",
		"event", draft.Key, "error", failed, "found", found, "look_up_error", err)
	switch {
	case err == nil && !found:
		// The first request may still arrive. It has the same key as another try, so they make one event.
		out := *failed
		out.Unsure = false
		out.Message += " The event is not in the calendar. Asking again is safe and makes it once."
		return Made{}, &out
	case err == nil && (!e.Start.Equal(draft.Start) || !e.End.Equal(draft.End)):
		return Made{}, &Error{Kind: Conflict, Message: "The event " + what +
			" is in the calendar at another time, because a person moved it.", Err: failed}
	case err == nil:
		e.Calendar = Primary
		return Made{Event: e, Created: true, LookedUp: true}, nil
	}
	out := &Error{Kind: Transient, Unsure: true, RetryAfter: failed.RetryAfter, Err: errors.Join(failed, err)}
	out.Message = failed.Message + " It is not known whether the event was made, and it cannot be looked up now: " + what +
		". Asking again is safe: it finds the event, or makes it once."
	if KindOf(inTime(err)) != Transient {
		out.Kind = Conflict
		out.Message = failed.Message + " It is not known whether the event was made, and the calendar does not let it be " +
			"looked up. Look in the calendar for " + what + " before it is asked for again."
	}
	return Made{}, out
}

// inTime turns an exceeded deadline into an *Error. A cancelled call keeps its error.
func inTime(err error) error {
	if _, named := errors.AsType[*Error](err); named || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Errorf(Transient, err, "The calendar does not answer in time.")
}

// part returns a context with n/m of the time that ctx has left, or without a deadline if ctx has none.
func part(ctx context.Context, n, m time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)*n/m)
}

// Period is the time from Start to End, half open.
type Period struct {
	Start, End time.Time
}

// Length is 0 or less for an invalid period.
func (p Period) Length() time.Duration { return p.End.Sub(p.Start) }

// Overlaps reports whether p and q have common time.
func (p Period) Overlaps(q Period) bool {
	return p.Start.Before(q.End) && q.Start.Before(p.End) && p.Length() > 0 && q.Length() > 0
}

// merge cuts copies of the periods to within, sorts them, and joins those that overlap or touch.
func merge(periods []Period, within Period) []Period {
	var cut []Period
	for _, p := range periods {
		if p.Overlaps(within) {
			cut = append(cut, Period{
				slices.MaxFunc([]time.Time{p.Start, within.Start}, time.Time.Compare),
				slices.MinFunc([]time.Time{p.End, within.End}, time.Time.Compare),
			})
		}
	}
	slices.SortFunc(cut, func(a, b Period) int { return a.Start.Compare(b.Start) })
	var merged []Period
	for _, p := range cut {
		last := len(merged) - 1
		switch {
		case last < 0 || p.Start.After(merged[last].End):
			merged = append(merged, p)
		case p.End.After(merged[last].End):
			merged[last].End = p.End
		}
	}
	return merged
}

// gaps returns the periods of at least least between the busy ones inside within. busy is a result of merge.
func gaps(busy []Period, within Period, least time.Duration) []Period {
	var free []Period
	add := func(start, end time.Time) {
		if p := (Period{start, end}); p.Length() > 0 && p.Length() >= least {
			free = append(free, p)
		}
	}
	from := within.Start
	for _, b := range busy {
		add(from, b.Start)
		from = b.End
	}
	add(from, within.End)
	return free
}
