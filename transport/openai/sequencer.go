package openai

import "strconv"

// request is one Respond, or several joined.
type request struct {
	toolsOff     bool
	instructions string
}

// join makes one request of two. Tools stay off if either wanted that: it is a
// limit. Instructions of both apply.
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

// create is one response.create on the wire.
type create struct {
	event string // its event_id
	request
}

// sequencer lets one response.create out at a time: never while a response is
// active and never while one that was sent is unconfirmed. The provider starts
// responses by itself (speech detection), so one of ours may still be refused with
// conversation_already_has_active_response; it then waits for the end of that
// response like any other. Its methods are called with conn.mu held; what they
// return is to be written after mu is let go.
type sequencer struct {
	busy   bool
	cancel bool   // what runs was told to stop
	active string // the response in progress; empty with busy if the provider did not name it
	sent   *create
	last   *create // the newest that was confirmed: it may have been another's confirmation
	wait   *request
	events int
}

// ask takes a request and returns what to send now, if anything.
func (s *sequencer) ask(r request) *create {
	if s.wait != nil {
		r = s.wait.join(r)
	}
	s.wait = &r
	if s.busy && s.active == "" && s.sent == nil {
		// Only the provider's word stands for that response, and its end was not
		// seen: trying again costs one refusal at most.
		s.busy = false
	}
	return s.next()
}

// next returns the waiting request if its time has come.
func (s *sequencer) next() *create {
	if s.busy || s.sent != nil || s.wait == nil {
		return nil
	}
	s.events++
	s.sent = &create{event: opCreate + "_" + strconv.Itoa(s.events), request: *s.wait}
	s.wait, s.cancel = nil, false
	return s.sent
}

// created notes that response id has begun.
func (s *sequencer) created(id string) {
	s.busy, s.active = true, id
	if s.sent == nil {
		s.cancel = false // not the one that was cancelled before it was confirmed
		return
	}
	s.last, s.sent = s.sent, nil
}

// done notes that response id has ended. bySpeech says that the user's speech ended
// it: the provider answers that speech by itself, so nothing needs to be asked.
func (s *sequencer) done(id string, bySpeech bool) *create {
	if s.active == id || s.active == "" {
		s.busy, s.active, s.last, s.cancel = false, "", nil, false
	}
	if bySpeech {
		s.wait = nil
	}
	return s.next()
}

// refused notes an error event. absorbed says that it is dealt with and nobody needs
// to hear of it.
func (s *sequencer) refused(event, code string) (send *create, absorbed bool) {
	var ours *create
	switch {
	case s.sent != nil && (event == s.sent.event || event == ""):
		ours, s.sent = s.sent, nil
	case s.last != nil && (event == s.last.event || event == ""):
		ours = s.last
	}
	if code == codeCancelLate {
		s.cancel = false
	}
	switch {
	case code == codeCancelLate && s.active == "":
		s.busy = false
	case code == codeActiveResponse && ours != nil:
		s.last = nil
		r := ours.request
		if s.wait != nil {
			r = r.join(*s.wait)
		}
		s.wait, s.busy = &r, true
		return nil, true
	}
	return s.next(), false
}

// withdraw drops what waits and says whether there is a response to cancel, and
// which one if that is known. A response is cancelled once.
func (s *sequencer) withdraw() (id string, running bool) {
	s.wait = nil
	running = (s.busy || s.sent != nil) && !s.cancel
	s.cancel = s.cancel || running
	return s.active, running
}
