package calendartest

import (
	"context"
	"sync"

	"voicegw/calendar"
)

// Fake is a calendar in memory. Its fields may be set before it is used.
type Fake struct {
	// Events are those of each name; a name that has no entry is not known.
	Events map[calendar.Name][]calendar.Event
	// Unread are returned with every answer.
	Unread []calendar.Unread
	// Errs fail every question to a calendar, CreateErr every Create.
	Errs      map[calendar.Name]error
	CreateErr error

	mu     sync.Mutex // guards the following
	asked  []calendar.Query
	drafts []calendar.Draft
}

// NewFake makes one that knows all names and has no events.
func NewFake() *Fake {
	f := &Fake{Events: map[calendar.Name][]calendar.Event{}, Errs: map[calendar.Name]error{}}
	for _, name := range calendar.Names() {
		f.Events[name] = nil
	}
	return f
}

// Busy is [calendar.Calendar].
func (f *Fake) Busy(ctx context.Context, q calendar.Query) (calendar.Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
	events, known := f.Events[q.Calendar]
	switch err := f.Errs[q.Calendar]; {
	case ctx.Err() != nil:
		return calendar.Found{}, ctx.Err()
	case err != nil:
		return calendar.Found{}, err
	case !known:
		return calendar.Found{}, calendar.NoCalendar(q.Calendar)
	}
	found := calendar.Found{Unread: f.Unread}
	for _, e := range events {
		if (calendar.Period{Start: e.Start, End: e.End}).Overlaps(calendar.Period{Start: q.From, End: q.To}) {
			found.Events = append(found.Events, e)
		}
	}
	return found, nil
}

// Create is [calendar.Calendar].
func (f *Fake) Create(ctx context.Context, d calendar.Draft) (calendar.Event, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drafts = append(f.drafts, d)
	if ctx.Err() != nil {
		return calendar.Event{}, false, ctx.Err()
	}
	if f.CreateErr != nil {
		return calendar.Event{}, false, f.CreateErr
	}
	if err := d.Check(); err != nil {
		return calendar.Event{}, false, err
	}
	for _, e := range f.Events[calendar.Primary] {
		if e.ID == d.Key {
			return e, false, nil
		}
	}
	e := calendar.Event{
		ID: d.Key, Calendar: calendar.Primary, Start: d.Start.UTC(), End: d.End.UTC(), Title: d.Title, Description: d.Description,
		Attendees: d.Attendees, Invitations: calendar.InvitationsNone,
	}
	if d.Meeting {
		e.MeetingURL = d.MeetingURL
	}
	if len(d.Attendees) > 0 {
		e.Invitations = calendar.InvitationsSent
	}
	f.Events[calendar.Primary] = append(f.Events[calendar.Primary], e)
	return e, true, nil
}

// Asked are the questions so far, in no order where they came at once.
func (f *Fake) Asked() []calendar.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]calendar.Query(nil), f.asked...)
}

// Drafts are the drafts so far.
func (f *Fake) Drafts() []calendar.Draft {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]calendar.Draft(nil), f.drafts...)
}
