package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/scenario"
)

type handleHabits struct {
	none bool          // no handle is sent
	busy bool          // handles are sent also while the model is at work
	late time.Duration // how much later than due handles are sent
	due  int           // handles that were due; a late one is void if another one became due
}

// sendState reports to a client that asked for it whether the session can be resumed now: not while the model is busy
// or a call is open.
func (s *session) sendState(now time.Time) {
	if s.cfg.SessionResumption == nil {
		return
	}
	s.busy = s.working()
	s.handles.due++
	if s.handles.none || s.busy && !s.handles.busy {
		s.send(serverFrame{ResumptionUpdate: &resumptionUpdate{}})
		return
	}
	s.sendHandle(now)
}

func (s *session) working() bool {
	return s.turn != nil || len(s.conv.calls.open(false))+len(s.conv.calls.open(true)) > 0
}

func (s *session) sendHandle(now time.Time) {
	switch {
	case s.handles.none:
	case s.handles.late > 0:
		due := s.handles.due
		s.after(now, s.handles.late, func(time.Time) {
			if due == s.handles.due && !s.handles.none && (s.handles.busy || !s.working()) {
				s.issueHandle()
			}
		})
	default:
		s.issueHandle()
	}
}

func (s *session) issueHandle() {
	u := &resumptionUpdate{NewHandle: s.grant(), Resumable: true}
	if s.cfg.SessionResumption != nil && s.cfg.SessionResumption.Transparent {
		u.LastConsumed = strconv.Itoa(s.consumed)
	}
	s.send(serverFrame{ResumptionUpdate: u})
}

// resumeFaults carries out the faults of this resume: those of the setup, and those that an
// earlier connection of the conversation has left for it. It returns whether the model has
// forgotten the conversation, and the other faults of the setup.
func (s *session) resumeFaults(atSetup []scenario.Fault) (forgotten bool, rest []scenario.Fault) {
	all := append(s.conv.atResume, atSetup...)
	s.conv.atResume = nil
	for _, a := range all {
		switch a.Kind {
		case scenario.RefuseResume:
			s.opts.Stats.Refused.Add(1)
			s.close(&closeError{Code: websocket.StatusCode(cmp.Or(a.Code, 1008)), Reason: cmp.Or(a.Reason, resumeReasons[a.Code])})
		case scenario.Amnesia:
			forgotten = true
		default:
			rest = append(rest, a)
		}
	}
	if forgotten {
		s.conv.forget()
	}
	return forgotten, slices.Clip(rest)
}

// resumeReasons are the provider's reasons for refusing a resume, by close code
// (discuss.ai.google.dev/t/186392 for 1007, aicc2025/sip-to-ai#14 for the others).
var resumeReasons = map[int]string{
	1007: reasonInvalidArgument,
	1008: reasonSessionNotFound,
	1011: reasonInternal,
}

// Handles live 2 h on the Developer API and 24 h on Vertex
// (https://ai.google.dev/gemini-api/docs/live-session; not verified).
const (
	handleLife       = 2 * time.Hour
	handleLifeVertex = 24 * time.Hour
	// maxHandles bounds the registry; the oldest handles are dropped first.
	maxHandles = 10_000
)

// registry maps resumption handles to snapshots of conversations. It may be used concurrently.
type registry struct {
	mu      sync.Mutex // guards the following fields
	handles map[string]held
	order   []string
	taken   map[*origin]bool // owned by an open connection
}

type held struct {
	snap    snapshot
	expires time.Time
}

func (r *registry) adopt(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[c.origin] = true
}

func (r *registry) release(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, c.origin)
}

func (r *registry) put(handle string, c *conversation, expires time.Time) {
	snap := c.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles[handle] = held{snap, expires}
	r.order = append(r.order, handle)
	if over := len(r.order) - maxHandles; over > 0 {
		for _, old := range r.order[:over] {
			delete(r.handles, old)
		}
		r.order = append(r.order[:0:0], r.order[over:]...)
	}
}

// resume gives a new connection the conversation at the time of the handle; later parts are forgotten. A
// handle may be used again. An unknown handle is closed 1008; one of a conversation that an open connection has is
// closed 1011; one of another model is an invalid argument (the first two as reported in aicc2025/sip-to-ai#14 and
// livekit/agents; the last because the documentation forbids changing the model).
func (r *registry) resume(handle, model string, now time.Time) (*conversation, *closeError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.handles[handle]
	switch {
	case !ok || now.After(h.expires):
		return nil, policy(reasonSessionNotFound)
	case r.taken[h.snap.origin]:
		return nil, internal(reasonInternal)
	case h.snap.origin.model != model:
		return nil, invalid(reasonInvalidArgument)
	}
	r.taken[h.snap.origin] = true
	return h.snap.resumed(), nil
}
