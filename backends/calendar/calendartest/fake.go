package calendartest

import (
	"context"
	"sync"

	"voicegw/backends/calendar"
)

// Fake is a calendar in memory. Its fields may be set before it is used.
type Fake struct {
	// Events are the events of each name; a name without an entry is not configured.
	Events map[calendar.Name][]calendar.Event
	// Unread are returned with every answer.
	Unread []calendar.Unread
	// Errs are the errors of each calendar, CreateErr that of every Create.
	Errs      map[calendar.Name]error
	CreateErr error
	// Landed says that the event is made although CreateErr is set; FindErr fails every Find.
	Landed  bool
	FindErr error
	// Hang is the request that is never answered: "busy team", "create", "find".
	Hang map[string]bool

	mu     sync.Mutex // guards the following
	asked  []calendar.Query
	drafts []calendar.Draft
}

// NewFake makes one with all names and no events.
func NewFake() *Fake {
	f := &Fake{Events: map[calendar.Name][]calendar.Event{}, Errs: map[calendar.Name]error{}}
	for _, name := range calendar.Names() {
		f.Events[name] = nil
	}
	return f
}

// Busy implements [calendar.Calendar].
func (f *Fake) Busy(ctx context.Context, q calendar.Query) (calendar.Found, error) {
	f.hang(ctx, "busy "+string(q.Calendar))
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

// Create implements [calendar.Calendar].
func (f *Fake) Create(ctx context.Context, d calendar.Draft) (calendar.Event, bool, error) {
	if f.Hang["create"] {
		<-ctx.Done()
		if f.Landed {
			f.mu.Lock()
			f.add(d)
			f.mu.Unlock()
		}
		return calendar.Event{}, false, &calendar.Error{Kind: calendar.Transient, Message: "It does not answer in time.", Unsure: true, Err: ctx.Err()}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drafts = append(f.drafts, d)
	if ctx.Err() != nil {
		return calendar.Event{}, false, ctx.Err()
	}
	if err := d.Check(); err != nil {
		return calendar.Event{}, false, err
	}
	if f.CreateErr != nil {
		if f.Landed {
			f.add(d)
		}
		return calendar.Event{}, false, f.CreateErr
	}
	for _, e := range f.Events[calendar.Primary] {
		if e.ID == d.Key {
			return e, false, nil
		}
	}
	return f.add(d), true, nil
}

// add puts an event into the primary calendar.
func (f *Fake) add(d calendar.Draft) calendar.Event {
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
	return e
}

// Find implements [calendar.Calendar].
func (f *Fake) Find(ctx context.Context, key string) (calendar.Event, bool, error) {
	f.hang(ctx, "find")
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return calendar.Event{}, false, ctx.Err()
	}
	if f.FindErr != nil {
		return calendar.Event{}, false, f.FindErr
	}
	for _, e := range f.Events[calendar.Primary] {
		if e.ID == key {
			return e, true, nil
		}
	}
	return calendar.Event{}, false, nil
}

// hang waits for the end of ctx if what is the request that is never answered.
func (f *Fake) hang(ctx context.Context, what string) {
	if f.Hang[what] {
		<-ctx.Done()
	}
}

// Asked returns the queries so far; concurrent ones are in no order.
func (f *Fake) Asked() []calendar.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]calendar.Query(nil), f.asked...)
}

// Drafts returns the drafts so far.
func (f *Fake) Drafts() []calendar.Draft {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]calendar.Draft(nil), f.drafts...)
}
