package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/transport"
)

// linkSide observes the gateway's connections to models. A visit is identified by its requested voice, which the
// provider does not see.
type linkSide struct {
	mu     sync.Mutex // guards the following fields and their contents
	visits map[string]*visitLinks
	owners map[string][]ownership // by session, in order
}

type visitLinks struct {
	links  []*chaosLink
	byGen  map[int]*chaosLink // by the gateway's number of the connection
	epoch  uint64             // of the session's gateway
	newest int                // the gateway's number of the newest connection
	failed int                // failed attempts since the latest link
	speech map[string][]byte  // the model's speech by item; nil after the visit
	swap   chan struct{}      // receives when the gateway closes a link; nil before the visit listens
}

type chaosLink struct {
	node   *chaosNode
	gen    int
	failed int // attempts before it
	opened time.Time
	closed time.Time // when the gateway closed it; zero if it was lost first
	lost   time.Time
	speaks bool      // an item is open
	cut    bool      // closed during speech
	by     time.Time // deadline of the replacement even during a call; zero without an announcement

	carried bool // it got the unfinished part of an earlier one, and has had no event
	works   bool // that part is a running delegation
}

func newLinkSide() *linkSide {
	return &linkSide{visits: map[string]*visitLinks{}, owners: map[string][]ownership{}}
}

// of returns the visit with that name. mu is held.
func (s *linkSide) of(visit string) *visitLinks {
	if s.visits[visit] == nil {
		s.visits[visit] = &visitLinks{speech: map[string][]byte{}, byGen: map[int]*chaosLink{}}
	}
	return s.visits[visit]
}

// differs describes a difference in an item's speech at a position, in bytes.
func (s *linkSide) differs(visit, item string, at int, pcm []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.of(visit).speech[item]
	switch {
	case at+len(pcm) > len(said):
		return fmt.Sprintf("bytes %d to %d arrived, and the model has sent %d", at, at+len(pcm), len(said))
	case !bytes.Equal(said[at:at+len(pcm)], pcm):
		return fmt.Sprintf("bytes %d to %d differ from those of the model", at, at+len(pcm))
	}
	return ""
}

// spoke reports whether the gateway got audio of an item.
func (s *linkSide) spoke(visit, item string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of(visit).speech[item]) > 0
}

// forget drops the speech of a finished visit.
func (s *linkSide) forget(visit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(visit).speech = nil
}

// replaced counts the replaced links.
func (s *linkSide) replaced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, v := range s.visits {
		n += max(len(v.links)-1, 0)
	}
	return n
}

// outlived counts the delegations that continued after their connection was replaced.
func (s *linkSide) outlived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, v := range s.visits {
		for _, l := range v.links {
			if l.works {
				n++
			}
		}
	}
	return n
}

// connected records an attempt to connect.
func (s *linkSide) connected(visit string, n *chaosNode, c transport.Conn, err error) (l *chaosLink, gen int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of(visit)
	if err != nil {
		v.failed++
		return nil, 0
	}
	v.newest++
	l = &chaosLink{node: n, gen: v.newest, failed: v.failed, opened: time.Now()}
	if !n.alive(func() {}) {
		l.lost = n.death()
	}
	v.failed = 0
	v.links = append(v.links, l)
	v.byGen[l.gen] = l
	info := c.Info()
	at := info.ExpiresAt
	if life := info.Capabilities.ConnectionLife; !at.After(l.opened) && life > 0 {
		at = l.opened.Add(life)
	}
	if life := at.Sub(l.opened); life > 0 {
		l.by = at.Add(-min(life/20, time.Minute))
	}
	return l, l.gen
}

// event records a message on a link.
func (s *linkSide) event(visit string, gen int, l *chaosLink, ev transport.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && l.closed.IsZero() && l.lost.IsZero() {
		l.lost = time.Now()
	}
	if l.carried && ev != nil {
		l.carried = false
		work, is := ev.(transport.Interaction)
		l.works = is && work.InProgress
	}
	switch ev := ev.(type) {
	case transport.AudioDone, transport.ResponseDone, transport.Interrupted:
		l.speaks = false
	case *transport.AudioOut:
		l.speaks = true
		name := ev.Item
		if gen > 1 {
			name = fmt.Sprintf("l%d.%s", gen, name)
		}
		if v := s.of(visit); v.speech != nil {
			v.speech[name] = append(v.speech[name], ev.PCM...)
		}
	case transport.GoAway:
		by := time.Now()
		if ev.TimeLeft > 6*time.Second {
			by = by.Add(ev.TimeLeft - min(max(ev.TimeLeft/3, 4*time.Second), 15*time.Second))
		}
		if l.by.IsZero() || by.Before(l.by) {
			l.by = by
		}
	}
}

// swaps returns the channel for the visit's closed links.
func (s *linkSide) swaps(visit string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of(visit)
	v.swap = make(chan struct{}, 1)
	return v.swap
}

// close records that the gateway closes a link.
func (s *linkSide) close(visit string, l *chaosLink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed.IsZero() && l.lost.IsZero() {
		l.closed, l.cut = time.Now(), l.speaks
		select {
		case s.of(visit).swap <- struct{}{}:
		default: // the visit does not listen
		}
	}
}

// number returns the number of the visit's next link.
func (s *linkSide) number(visit string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of(visit).links) + 1
}

// chaosLog extracts the ends of sessions and the reasons for replacements from the gateway's log.
type chaosLog struct {
	mu       sync.Mutex // guards the following fields
	ended    map[string]sessionEnd
	switched map[string][]linkSwitch
	hows     map[string]int // what models knew on new connections
	audited  map[auditedCall]time.Time
	unsafe   map[string]time.Time // when a client got a token that other gateways may not know
	leaked   bool                 // a line contained the provider's key
}

type sessionEnd struct {
	at     time.Time
	reason string
}

type linkSwitch struct {
	at     time.Time
	reason string
	gen    int
	calls  int // open calls
}

func newChaosLog() *chaosLog {
	return &chaosLog{ended: map[string]sessionEnd{}, switched: map[string][]linkSwitch{}, hows: map[string]int{}, audited: map[auditedCall]time.Time{}, unsafe: map[string]time.Time{}}
}

// auditedCall is a call in the audit.
type auditedCall struct{ session, call string }

// audits records when a call first appears: an answer that waits for the model is recorded on delivery.
func (l *chaosLog) audits(r audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := (auditedCall{r.SessionID, r.CallID}); l.audited[k].IsZero() {
		l.audited[k] = time.Now()
	}
}

// hasLeaked reports whether a line contained the provider's key.
func (l *chaosLog) hasLeaked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaked
}

// Write takes one line, a JSON object.
func (l *chaosLog) Write(line []byte) (int, error) {
	var in struct {
		Time    time.Time
		Msg     string
		Session string `json:"session_id"`
		Reason  string
		Link    int
		Calls   int
		How     string
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaked = l.leaked || bytes.Contains(line, []byte(secret))
	if err := json.Unmarshal(line, &in); err != nil {
		return 0, err
	}
	switch in.Msg {
	case "session ended":
		if in.Reason == "moving" || in.Reason == "taken_over" {
			break // another gateway continues it
		}
		l.ended[in.Session] = sessionEnd{in.Time, in.Reason}
	case "the model's connection is replaced":
		l.switched[in.Session] = append(l.switched[in.Session], linkSwitch{in.Time, in.Reason, in.Link, in.Calls})
	case "a client got a token that other gateways may not know":
		l.unsafe[in.Session] = in.Time
	case "the model's connection was replaced":
		l.hows[in.How]++
	}
	return len(line), nil
}

// reasons counts the reasons for replacements.
func (l *chaosLog) reasons() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[string]int{}
	for _, all := range l.switched {
		for _, s := range all {
			n[s.reason]++
		}
	}
	return n
}

// until returns the latest time at which a call may have run: its handler may outlive its timeout.
func (r *run) until() time.Time {
	given := r.at.Add(chaosTimeout * time.Millisecond)
	if spec, _ := named(r.tool); spec.kind != kindGo {
		given = given.Add(-remoteLag) // the call began before its request arrived
	}
	if r.ended.IsZero() || r.ended.After(given) {
		return given
	}
	return r.ended
}
