package store

import (
	"fmt"
	"testing"

	"voicegw/internal/testutil"
)

// The model of voice sessions: offers and their tickets, sessions on two gateways that may be killed, their
// handbacks, and a turn of text. It uses the store's opens and idle. docs/models.md lists what it leaves out.

const modelTickets = 2

// voiceModelState is the whole state.
type voiceModelState struct {
	tickets [modelTickets]modelTicket
	offered int8 // tickets so far
	voice   modelVoice
	lease   int8 // the owner of the conversation: 0 none, 1 and 2 a session, 3 the text, 4 a killed process

	// The conversation: its revision, and the number of each writer's entries.
	revision int8
	spoken   [modelTickets]int8
	written  int8
	text     modelText
	kills    int8
	away     int8
}

// modelTicket is a ticket and its session.
type modelTicket struct {
	phase    ticketPhase
	replaced bool // a newer offer has replaced it
	opened   int8 // sessions
	tries    int8 // by clients, so far
	loaded   int8 // the revision that the handback is based on
	had      [modelTickets]int8
	hadText  int8
	heard    [modelTickets]int8 // the conversation at the session's start
	away     bool               // the store is down, so the session's lease is not renewed
	late     bool               // the lease ended before the handback
}

type ticketPhase int8

const (
	unoffered    ticketPhase = iota
	offered                  // it can be used
	redeemed                 // it is used, but its session has not begun
	talking                  // its session runs
	waitingLease             // the session has ended, and its handback waits for the conversation
	loading
	saving
	handedBack
	overAndOut // its session has ended
	killedOff
	turnedAway
)

// modelVoice is the store's voice record: an offer or a session, of a ticket from 1.
type modelVoice struct {
	of      int8
	running bool
}

// modelText is a turn of text.
type modelText struct {
	phase   int8 // 0 not yet, 1 holds the lease, 2 has loaded, 3 has saved, 4 is over
	loaded  int8
	had     [modelTickets]int8
	hadText int8
}

// voiceModel is the model, and its limits.
type voiceModel struct {
	kills int8
	away  int8 // how often the store may be down
	// The faults: opens decides whether a ticket opens a session; blind saves without checking the revision; with
	// unfenced a session continues that cannot renew its lease.
	opens    func(session string, old *voiceState) error
	blind    bool
	unfenced bool
}

// The promises.
const (
	oneSession   = "a ticket opens at most one session"
	onePerTalk   = "at most one voice session of a conversation runs"
	replacedDead = "a replaced ticket opens nothing"
	nothingLost  = "a handback is stored, once"
	nextKnows    = "a session knows the previous handback, if the store was available"
)

func (m voiceModel) protocol() testutil.Protocol[voiceModelState] {
	broken := func(name string, how func(s voiceModelState) string) testutil.Promise[voiceModelState] {
		return testutil.Promise[voiceModelState]{Name: name, Broken: how}
	}
	each := func(name, how string, is func(s voiceModelState, i int) bool) testutil.Promise[voiceModelState] {
		return broken(name, func(s voiceModelState) string {
			for i := range s.tickets {
				if is(s, i) {
					return fmt.Sprintf(how, i+1)
				}
			}
			return ""
		})
	}
	return testutil.Protocol[voiceModelState]{
		Steps: m.steps,
		Promises: []testutil.Promise[voiceModelState]{
			each(oneSession, "ticket %d has opened two", func(s voiceModelState, i int) bool { return s.tickets[i].opened > 1 }),
			each(replacedDead, "ticket %d has", func(s voiceModelState, i int) bool { return s.tickets[i].replaced && s.tickets[i].phase == talking }),
			broken(onePerTalk, func(s voiceModelState) string {
				if s.tickets[0].phase == talking && s.tickets[1].phase == talking {
					return "two run"
				}
				return ""
			}),
			each(nothingLost, "the handback of session %d is there twice, or is lost", func(s voiceModelState, i int) bool {
				back := s.tickets[i].phase == handedBack || s.tickets[i].phase == overAndOut
				return s.spoken[i] > 1 || back && s.spoken[i] != 1
			}),
			broken(nothingLost, func(s voiceModelState) string {
				if s.written > 1 || s.text.phase >= 3 && s.written != 1 {
					return "the turn of text is there twice, or is lost"
				}
				return ""
			}),
			each(nextKnows, "session %d does not", func(s voiceModelState, i int) bool {
				o := 1 - i
				return s.tickets[i].phase == talking && s.tickets[o].phase == overAndOut && !s.tickets[o].late && s.tickets[i].heard[o] == 0
			}),
		},
		End: func(s voiceModelState) bool {
			for _, t := range s.tickets {
				switch t.phase {
				case unoffered, offered, talking, overAndOut, killedOff, turnedAway:
				default:
					return false
				}
			}
			return s.text.phase == 0 || s.text.phase == 4
		},
		Show: func(s voiceModelState) string { return fmt.Sprintf("%+v", s) },
	}
}

func sessionName(i int8) string { return fmt.Sprintf("voice-%d", i) }

// state is v as the store's functions see it.
func (v modelVoice) state() *voiceState {
	if v.of == 0 {
		return nil
	}
	return &voiceState{SessionID: sessionName(v.of), Running: v.running}
}

func (m voiceModel) steps(s voiceModelState, can testutil.Can[voiceModelState]) {
	if i := s.offered; i < modelTickets && idle(s.voice.state()) == nil {
		n := s
		n.offered++
		n.tickets[i].phase = offered
		for k := range i {
			n.tickets[k].replaced = s.tickets[k].phase <= redeemed // its session does not run yet
		}
		n.voice = modelVoice{of: i + 1}
		can("", fmt.Sprintf("ticket %d is offered", i+1), n)
	}
	for i := range s.tickets {
		m.client(s, i, can)
		m.handBack(s, i, can)
	}
	m.text(s, can)
	m.ends(s, can)
}

// client is a client with its ticket, which may be reloaded and reconnect, and its session.
func (m voiceModel) client(s voiceModelState, i int, can testutil.Can[voiceModelState]) {
	t, who := s.tickets[i], fmt.Sprintf("session %d", i+1)
	step := func(by, does string, change func(n *voiceModelState, t *modelTicket)) {
		n := s
		change(&n, &n.tickets[i])
		can(by, does, n)
	}
	if t.phase > offered && t.tries < 2 {
		step("", fmt.Sprintf("client %d is reloaded, and its ticket is refused: it is used", i+1), func(_ *voiceModelState, t *modelTicket) { t.tries++ })
	}
	switch t.phase {
	case offered:
		step("", fmt.Sprintf("client %d connects with ticket %d, which is then used", i+1, i+1), func(_ *voiceModelState, t *modelTicket) { t.phase = redeemed; t.tries++ })
		step("", fmt.Sprintf("ticket %d expires", i+1), func(_ *voiceModelState, t *modelTicket) { t.phase = turnedAway })
	case redeemed:
		if m.opens(sessionName(int8(i+1)), s.voice.state()) != nil {
			step(who, "is refused: another session runs, or its ticket was replaced", func(_ *voiceModelState, t *modelTicket) { t.phase = turnedAway })
			return
		}
		step(who, "runs, and reads the conversation", func(n *voiceModelState, t *modelTicket) {
			n.voice = modelVoice{of: int8(i + 1), running: true}
			t.phase, t.heard = talking, n.spoken
			t.opened++
		})
	case talking:
		step("", fmt.Sprintf("client %d hangs up", i+1), func(_ *voiceModelState, t *modelTicket) { t.phase = waitingLease })
		switch {
		case !t.away && s.away < m.away:
			step("", fmt.Sprintf("the store is down, and session %d cannot renew its lease", i+1), func(n *voiceModelState, t *modelTicket) { n.away++; t.away = true })
		case t.away:
			step("", fmt.Sprintf("the store recovers in time for session %d", i+1), func(n *voiceModelState, t *modelTicket) {
				if n.voice == (modelVoice{of: int8(i + 1), running: true}) {
					t.away = false
				}
			})
			if !m.unfenced {
				step(who, "ends, as its lease has nearly expired", func(_ *voiceModelState, t *modelTicket) { t.phase = waitingLease })
			}
		}
	}
	if t.phase >= redeemed && t.phase < overAndOut && s.kills < m.kills {
		step("", fmt.Sprintf("the gateway of session %d is killed", i+1), func(n *voiceModelState, t *modelTicket) {
			n.kills++
			t.phase = killedOff
			if n.lease == int8(i+1) {
				n.lease = 4
			}
		})
	}
}

// handBack is Desk.HandBack of a session, and then the end of its ticket.
func (m voiceModel) handBack(s voiceModelState, i int, can testutil.Can[voiceModelState]) {
	who, me := fmt.Sprintf("session %d", i+1), int8(i+1)
	n := s
	t := &n.tickets[i]
	switch s.tickets[i].phase {
	case waitingLease:
		t.phase = loading
		if s.lease == 0 {
			n.lease = me
			can(who, "holds the conversation, to hand back", n)
			return
		}
		can(who, "has waited 10 s for the conversation, and continues without", n)
	case loading:
		t.phase, t.loaded, t.had, t.hadText = saving, s.revision, s.spoken, s.written
		can(who, "loads the conversation", n)
	case saving:
		if t.loaded != s.revision && !m.blind {
			t.phase = loading
			can(who, "finds that the conversation has changed", n)
			return
		}
		n.spoken, n.written = t.had, t.hadText
		n.spoken[i]++
		n.revision++
		t.phase = handedBack
		can(who, "has handed back", n)
	case handedBack:
		t.phase = overAndOut
		if n.lease == me {
			n.lease = 0
		}
		if n.voice == (modelVoice{of: me, running: true}) {
			n.voice = modelVoice{}
		}
		can(who, "has ended: the conversation and its voice are free", n)
	}
}

// text is a turn of text, Agent.Respond.
func (m voiceModel) text(s voiceModelState, can testutil.Can[voiceModelState]) {
	n := s
	t := &n.text
	switch s.text.phase {
	case 0:
		if s.lease == 0 {
			n.lease, t.phase = 3, 1
			can("", "the user writes, and the turn holds the conversation", n)
		}
	case 1:
		t.phase, t.loaded, t.had, t.hadText = 2, s.revision, s.spoken, s.written
		can("the text", "loads the conversation, and answers", n)
	case 2:
		if t.loaded != s.revision && !m.blind {
			t.phase = 1
			can("the text", "finds that the conversation has changed", n)
			return
		}
		n.spoken, n.written = t.had, t.hadText+1
		n.revision++
		t.phase = 3
		can("the text", "is saved", n)
	case 3:
		t.phase = 4
		if n.lease == 3 {
			n.lease = 0
		}
		can("the text", "is over", n)
	}
}

// ends are the expiries of leases whose holder was killed, or cannot reach the store. By the holder's clock its lease
// has nearly expired before the store ends it.
func (m voiceModel) ends(s voiceModelState, can testutil.Can[voiceModelState]) {
	n := s
	if s.lease == 4 {
		n.lease = 0
		can("the lease", "of the killed process ends", n)
	}
	n = s
	if v := s.voice; v.running && s.tickets[v.of-1].phase == killedOff {
		n.voice = modelVoice{}
		can("the lease", "of the killed session ends", n)
	}
	n = s
	if v := s.voice; v.running && s.tickets[v.of-1].away && (m.unfenced || s.tickets[v.of-1].phase != talking) {
		n.voice = modelVoice{}
		n.tickets[v.of-1].late = s.tickets[v.of-1].phase < handedBack
		can("the lease", "of the session that could not renew it ends", n)
	}
	n = s
	if s.lease > 0 && s.lease < 4 && s.away < m.away {
		n.away++
		n.lease = 0
		can("", "the store is down for longer than the lease of the conversation", n)
	}
}

// TestModelOfVoiceSessions explores offers, sessions, kills, outages of the store, handbacks and a turn of text.
func TestModelOfVoiceSessions(t *testing.T) {
	m := voiceModel{kills: 1, away: 1, opens: opens}
	if testutil.Deep() {
		m.kills, m.away = 2, 2
	}
	testutil.Keeps(t, m.protocol())
}

// TestModelFindsReplacedTickets: without the guard, a replaced ticket opens a session after the newer one's session.
func TestModelFindsReplacedTickets(t *testing.T) {
	before := func(session string, old *voiceState) error {
		if old != nil && old.SessionID != session && !old.Running {
			return ErrUsed
		}
		return idle(old)
	}
	testutil.Breaks(t, voiceModel{opens: before}.protocol(), replacedDead)
}

// TestModelFindsLostHandbacks: without its revision, a turn of text overwrites a handback.
func TestModelFindsLostHandbacks(t *testing.T) {
	testutil.Breaks(t, voiceModel{opens: opens, blind: true}.protocol(), nothingLost)
}

// TestModelFindsSecondSessions: if the store is down for longer than the lease of a running session, and the session
// continues, a second one can begin during it.
func TestModelFindsSecondSessions(t *testing.T) {
	testutil.Breaks(t, voiceModel{opens: opens, away: 1, unfenced: true}.protocol(), onePerTalk)
}
