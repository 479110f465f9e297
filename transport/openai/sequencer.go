package openai

import (
	"slices"
	"strconv"
	"time"
)

// How long to wait for an event from the provider that may never come: see the sequencer's table.
const (
	// createPatience: for response.created or a refusal. Both have been seen to come within half a second.
	createPatience = 5 * time.Second
	// cancelPatience: for the response.done of a cancelled response.
	cancelPatience = 3 * time.Second
	// silencePatience: for any event of an active response while a request waits for its end.
	silencePatience = 5 * time.Second
)

// Limits of a sequencer's memory. The oldest entry is dropped first.
const (
	maxLate      = 16 // requests that were given up
	maxAbandoned = 16 // responses that were given up
)

// request is one Respond, or several merged.
type request struct {
	toolsOff     bool
	instructions string
}

// Tools stay off if either request turned them off, since that is a restriction.
func (r request) join(other request) request {
	r.toolsOff = r.toolsOff || other.toolsOff
	switch {
	case r.instructions == "" || r.instructions == other.instructions:
		r.instructions = other.instructions
	case other.instructions != "":
		r.instructions += "\n" + other.instructions
	}
	return r
}

// create is one response.create that was sent.
type create struct {
	// event is its event_id, which an error repeats, and its label: the metadata that the response carries.
	event string
	request
	at time.Time // when it was sent
	// plain: it carries no label.
	plain bool
	// repeats: an identical request was given up and may still be answered.
	repeats bool
	// withdrawn: its answer is no longer wanted.
	withdrawn bool
	// outdated: its answer will not be wanted once the request is given up, because the conversation has continued or
	// another response has begun.
	outdated bool
}

// sequencer sends one response.create at a time: never while a response is active and never while an earlier one is
// unconfirmed. Whatever it holds back has a way out that does not depend on the provider:
//
//	held                     | until                                        | or, without it
//	a request that was sent  | response.created with its label, or without  | after createPatience
//	                         | one from a server that repeats no labels     | it is given up
//	                         | an error event that names it, or no event    |
//	                         | a cancel that found nothing active           |
//	a request that waits for | its response.done                            | after silencePatience without
//	a response to end        |                                              | an event of it, it is sent
//	... which was cancelled  | its response.done                            | after cancelPatience the
//	                         |                                              | response is given up
//	... which was not seen,  | any response.done, the next request,         | after silencePatience it is
//	only reported by a       | a cancel that found nothing active           | sent again
//	refusal                  |                                              |
//	all of it                | the connection's end: a new one has its own  |
//	                         | sequencer                                    |
//
// An interruption (withdraw) drops the waiting request. A request that was given up may be answered late. If nothing
// has happened since, that is the answer, and a repeat of the request is dropped; otherwise the response is cancelled
// and hidden from the caller, and so is a second answer to one request.
//
// The provider also starts responses itself (speech detection), so one of our requests may still be refused with
// conversation_already_has_active_response; it then waits for the end of that response like any other request. The
// methods are called with conn.mu held; their results are to be written after mu is released.
type sequencer struct {
	busy     bool
	cancel   bool      // the active response was cancelled
	cancelAt time.Time // when cancel was set
	active   string    // the active response; empty although busy if the provider did not name it
	sent     *create
	last     *create // the last confirmed one: another request's response may have confirmed it
	wait     *request
	quietAt  time.Time // since when wait has waited without an event of the response
	progress int64     // number of response events at that time
	late     []create  // given up; the provider may still answer them
	// abandoned are the responses that were given up; Recv takes them.
	abandoned []string
	labels    bool // the server repeats a request's label
	input     bool // the conversation has new input since a response last began
	events    int
	plain     bool // requests carry no label
}

// ask takes a request and returns what to send now, if anything. progress is the number of response events so far.
func (s *sequencer) ask(r request, now time.Time, progress int64) *create {
	s.expire(now)
	if s.wait != nil {
		r = s.wait.join(r)
	} else {
		s.quietAt, s.progress = now, progress
	}
	s.wait = &r
	if s.busy && s.active == "" && s.sent == nil {
		// The response is known only from a refusal, and its end may be missed: another try costs at most one refusal.
		s.busy = false
	}
	return s.next(now)
}

func (s *sequencer) next(now time.Time) *create {
	if s.busy || s.sent != nil || s.wait == nil {
		return nil
	}
	s.events++
	s.sent = &create{event: opCreate + "_" + strconv.Itoa(s.events), request: *s.wait, at: now, plain: s.plain}
	s.sent.repeats = slices.ContainsFunc(s.late, func(l create) bool { return !l.outdated })
	s.wait, s.cancel = nil, false
	return s.sent
}

// deadline is when due must be called; zero if nothing waits.
func (s *sequencer) deadline() time.Time {
	switch {
	case s.wait == nil:
		return time.Time{}
	case s.sent != nil:
		return s.sent.at.Add(createPatience)
	case s.cancel:
		return s.cancelAt.Add(cancelPatience)
	default:
		return s.quietAt.Add(silencePatience)
	}
}

// due returns what to send because waiting for the provider's permission has timed out.
func (s *sequencer) due(now time.Time, progress int64) *create {
	s.expire(now)
	if s.wait != nil && s.busy && s.sent == nil && !s.cancel {
		if progress != s.progress {
			s.quietAt, s.progress = now, progress
		}
		if !now.Before(s.quietAt.Add(silencePatience)) {
			s.abandon()
		}
	}
	return s.next(now)
}

// expire gives up overdue waits.
func (s *sequencer) expire(now time.Time) {
	if s.sent != nil && !now.Before(s.sent.at.Add(createPatience)) {
		s.giveUp()
	}
	if s.busy && s.cancel && !now.Before(s.cancelAt.Add(cancelPatience)) {
		s.abandon()
	}
}

func (s *sequencer) giveUp() {
	late := *s.sent
	late.outdated = late.outdated || late.withdrawn
	s.late = pushed(s.late, maxLate, late)
	s.sent = nil
}

func (s *sequencer) abandon() {
	if s.active != "" {
		s.abandoned = pushed(s.abandoned, maxAbandoned, s.active)
	}
	s.busy, s.active, s.cancel, s.last = false, "", false, nil
}

func (s *sequencer) changed() {
	s.input = true
	s.outdate()
}

func (s *sequencer) outdate() {
	if s.sent != nil {
		s.sent.outdated = true
	}
	for i := range s.late {
		s.late[i].outdated = true
	}
}

// created records a response's begin. label is the event_id of the request that it answers; may be empty. A stale
// response answers no current request: it must be cancelled and hidden from the caller.
func (s *sequencer) created(id, label string, now time.Time) (stale bool) {
	s.expire(now)
	ours, late := s.origin(label)
	switch {
	case ours != nil:
		stale = ours.withdrawn && label != ""
	case late != nil:
		stale = late.outdated
		if !stale && s.sent != nil && s.sent.repeats {
			s.giveUp() // this response also answers that request
		}
	case label != "":
		stale = true // the request was answered already
	}
	if !stale {
		s.input = false
		s.outdate()
	}
	if stale && s.busy && s.active != "" {
		return true // a response that the provider started itself continues
	}
	if s.cancel = stale || ours != nil && ours.withdrawn; stale {
		s.cancelAt = now
	}
	s.busy, s.active = true, id
	if ours != nil {
		s.last = ours
	}
	return stale
}

// origin removes the request that a response answers. It finds none for the provider's own responses.
func (s *sequencer) origin(label string) (ours, late *create) {
	s.labels = s.labels || label != ""
	if s.sent != nil && (label == s.sent.event || !s.labels) {
		ours, s.sent = s.sent, nil
		return ours, nil
	}
	if !s.labels && len(s.late) > 0 && (!s.input || !s.late[0].outdated) {
		// The server repeats no labels. Without new input, this is the answer to the earlier request.
		label = s.late[0].event
	}
	return nil, s.takeLate(label)
}

// takeLate removes and returns the given-up request with that event_id, or nil.
func (s *sequencer) takeLate(event string) *create {
	at := slices.IndexFunc(s.late, func(l create) bool { return l.event == event })
	if at < 0 {
		return nil
	}
	late := s.late[at]
	s.late = slices.Delete(s.late, at, at+1)
	return &late
}

// bySpeech: the user's speech ended the response, and the provider answers it on its own.
func (s *sequencer) done(id string, bySpeech bool, now time.Time) *create {
	if s.active == id || s.active == "" {
		s.busy, s.active, s.last, s.cancel = false, "", nil, false
	}
	s.abandoned = slices.DeleteFunc(s.abandoned, func(r string) bool { return r == id })
	if bySpeech {
		s.wait = nil
	}
	return s.next(now)
}

// refused records an error event. absorbed means that it has been handled and need not be reported.
func (s *sequencer) refused(event, code string, now time.Time) (send *create, absorbed bool) {
	s.expire(now)
	var ours *create
	switch {
	case s.sent != nil && (event == s.sent.event || event == ""):
		ours, s.sent = s.sent, nil
	case s.last != nil && (event == s.last.event || event == ""):
		ours = s.last
	case event != "":
		if late := s.takeLate(event); late != nil && code == codeActiveResponse {
			if !late.outdated && s.sent == nil {
				s.again(late.request, now)
			}
			return s.next(now), true
		}
	}
	if code == codeCancelLate {
		s.nothingActive()
	}
	if code == codeActiveResponse && ours != nil {
		answered := ours == s.last && ours.repeats // by the answer to the request that it repeats
		s.last = nil
		if answered || ours.withdrawn {
			return s.next(now), true
		}
		s.again(ours.request, now)
		return nil, true
	}
	return s.next(now), false
}

// nothingActive records that the provider had no response to cancel.
func (s *sequencer) nothingActive() {
	s.cancel = false
	if s.sent != nil && s.sent.withdrawn {
		// The provider handles events in order, so it never began this one.
		s.giveUp()
	}
	s.busy = s.busy && s.active != ""
}

func (s *sequencer) again(r request, now time.Time) {
	if s.wait != nil {
		r = r.join(*s.wait)
	}
	s.wait, s.busy, s.quietAt = &r, true, now
}

// withdraw drops the waiting request and returns the response to cancel, once, and its id if known.
func (s *sequencer) withdraw(now time.Time) (id string, running bool) {
	s.expire(now)
	s.wait = nil
	s.outdate()
	if s.sent != nil {
		s.sent.withdrawn = true
	}
	running = (s.busy || s.sent != nil) && !s.cancel
	if running {
		s.cancel, s.cancelAt = true, now
	}
	return s.active, running
}
