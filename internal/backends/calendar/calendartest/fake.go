package calendartest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"voicegw/internal/backends/calendar"
)

// Fake is a calendar in memory. A test may set its fields before use.
type Fake struct {
	// Events are the events of each name; a name without an entry is not configured.
	Events map[calendar.Name][]calendar.Event
	Unread []calendar.Unread // returned with every answer
	// Errs are the errors of each calendar's Busy. CreateErr and FindErr fail every Create and Find.
	Errs      map[calendar.Name]error
	CreateErr error
	FindErr   error
	Landed    bool            // makes the event although CreateErr is set
	Hang      map[string]bool // requests that get no answer: "busy team", "create", "find"

	mu     sync.Mutex // guards the following
	asked  []calendar.Query
	drafts []calendar.Draft
}

// NewFake makes a Fake with all names and no events.
func NewFake() *Fake {
	f := &Fake{Events: map[calendar.Name][]calendar.Event{}, Errs: map[calendar.Name]error{}}
	for _, name := range calendar.Names() {
		f.Events[name] = nil
	}
	return f
}

// Busy implements [calendar.Calendar].
func (f *Fake) Busy(ctx context.Context, q calendar.Query) (found calendar.Found, err error) {
	defer f.enter(ctx, "busy "+string(q.Calendar))()
	f.asked = append(f.asked, q)
	events, known := f.Events[q.Calendar]
	switch err = cmp.Or(ctx.Err(), f.Errs[q.Calendar]); {
	case err != nil:
		return found, err
	case !known:
		return found, calendar.NoCalendar(q.Calendar)
	}
	found.Unread = f.Unread
	for _, e := range events {
		if (calendar.Period{Start: e.Start, End: e.End}).Overlaps(calendar.Period{Start: q.From, End: q.To}) {
			found.Events = append(found.Events, e)
		}
	}
	return found, nil
}

// Create implements [calendar.Calendar].
func (f *Fake) Create(ctx context.Context, d calendar.Draft) (e calendar.Event, created bool, err error) {
	defer f.enter(ctx, "create")()
	f.drafts = append(f.drafts, d)
	err = cmp.Or(ctx.Err(), d.Check(), f.CreateErr)
	if f.Hang["create"] {
		err = &calendar.Error{Kind: calendar.Transient, Message: "It does not answer in time.", Unsure: true, Err: ctx.Err()}
	}
	e, exists := f.find(d.Key)
	if !exists && (err == nil || f.Landed) {
		e = f.add(d)
	}
	if err != nil {
		return calendar.Event{}, false, err
	}
	return e, !exists, nil
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
func (f *Fake) Find(ctx context.Context, key string) (e calendar.Event, found bool, err error) {
	defer f.enter(ctx, "find")()
	if err = cmp.Or(ctx.Err(), f.FindErr); err != nil {
		return e, false, err
	}
	e, found = f.find(key)
	return e, found, nil
}

// find returns the event of a key; f.mu is held.
func (f *Fake) find(key string) (e calendar.Event, found bool) {
	all := f.Events[calendar.Primary]
	if i := slices.IndexFunc(all, func(e calendar.Event) bool { return e.ID == key }); i >= 0 {
		return all[i], true
	}
	return e, false
}

// enter locks f.mu. If the request is in Hang, it first waits for the end of ctx.
func (f *Fake) enter(ctx context.Context, request string) (leave func()) {
	if f.Hang[request] {
		<-ctx.Done()
	}
	f.mu.Lock()
	return f.mu.Unlock
}

// Asked returns the queries so far. Concurrent ones are in any order.
func (f *Fake) Asked() []calendar.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// Drafts returns the drafts so far.
func (f *Fake) Drafts() []calendar.Draft {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.drafts)
}
