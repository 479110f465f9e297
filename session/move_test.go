package session

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

// givers is a Cluster whose sessions can be handed off.
type givers struct {
	nodes

	mu     sync.Mutex // guards the following fields
	places []*giver   // in the order of the sessions' start
	refuse error      // result of each Give; nil accepts the session
	stall  chan struct{}
}

func (g *givers) Enter(r store.SessionRecord) Place {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &giver{all: g, id: r.ID, sure: true}
	g.places = append(g.places, p)
	return p
}

// giver is the place of one session.
type giver struct {
	noPlace
	all *givers
	id  string

	// Guarded by givers.mu.
	tries int
	given []store.Checkpoint
	at    time.Time
	sure  bool
	lost  func()
	ended bool
}

func (p *giver) End() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.ended = true
}

func (p *giver) Give(ctx context.Context, c store.Checkpoint) error {
	p.all.mu.Lock()
	p.tries++
	err, stall := p.all.refuse, p.all.stall
	p.all.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if err == nil {
		p.given, p.at = append(p.given, c), time.Now()
	}
	return err
}

func (p *giver) Sure() bool {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	return p.sure
}

func (p *giver) WhenLost(f func()) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.lost = f
}

// of returns a copy of the place of the i-th session.
func (g *givers) of(i int) giver {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := *g.places[i]
	p.given = slices.Clone(p.given)
	return p
}

// moving is a stage whose sessions can be handed off.
func moving(t *testing.T, change func(*Options)) (*stage, *givers) {
	t.Helper()
	all := &givers{}
	return newStage(t, remembering, func(o *Options) {
		o.Cluster, o.Policy = all, orchestrator.Policy{ResumeGrace: 30 * time.Second}
		o.Limits.ExemptLoopback = true
		if change != nil {
			change(o)
		}
	}), all
}

// drain starts a drain of the stage with a time limit; wait waits for its end.
func (st *stage) drain(limit time.Duration) (wait func() (took time.Duration)) {
	ctx, stop := contextWithTimeout(limit)
	done, began := make(chan error, 1), time.Now()
	go func() { done <- st.m.Drain(ctx) }()
	synctest.Wait()
	return func() time.Duration {
		st.t.Helper()
		defer stop()
		if err := <-done; err != nil {
			st.t.Error(err)
		}
		return time.Since(began)
	}
}

// begin begins a session from a loopback address, and returns both ends.
func (st *stage) begin() (*testClient, *fakeConn) {
	st.t.Helper()
	a, err := st.m.Admit(netip.MustParseAddr("127.0.0.1"), Coming{})
	if err != nil {
		st.t.Fatal(err)
	}
	c := newTestClient()
	c.say(startText)
	st.m.Start(a, c)
	return c, st.fake.Accept(st.t)
}

// TestDrainMovesSessions: sessions leave one after another within half of the drain's time, each with a checkpoint and
// without a handback; the client gets session.moving and is closed with 4007, the model is disconnected. The drain ends
// with the last one.
func TestDrainMovesSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		clients, models := make([]*testClient, 10), make([]*fakeConn, 10)
		for i := range clients {
			clients[i], models[i] = st.begin()
			synctest.Wait()
			pass(time.Millisecond)
		}
		began := time.Now()
		took := st.drain(30 * time.Second)()
		for i, c := range clients {
			c.expect(t, "session.started", "session.moving draining")
			c.ended(t, protocol.CloseMoving)
			if c.count("session.ended") != 0 {
				t.Errorf("the client of session %d got session.ended", i)
			}
			models[i].WaitClosed(t)
			p := all.of(i)
			if len(p.given) != 1 {
				t.Fatalf("session %d was handed off %d times", i, len(p.given))
			}
			want := time.Duration(i) * 1500 * time.Millisecond
			if after := p.at.Sub(began); after < want || after > want+time.Second {
				t.Errorf("session %d left after %s, want about %s", i, after, want)
			}
		}
		if took > 15*time.Second {
			t.Errorf("the drain took %s", took)
		}
		if at := st.m.Census(); !at.Draining || at.Moved != 10 || at.Sessions+at.Carried+st.m.Away() > 0 {
			t.Errorf("at the end the state is %+v", at)
		}
	})
}

// stationary is a client that follows its session to no other process.
type stationary struct{ *testClient }

func (stationary) Follows() bool { return false }

// TestDrainKeepsSessionsOfStationaryClients: a session whose client cannot follow stays until the drain is over.
func TestDrainKeepsSessionsOfStationaryClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		c := newTestClient()
		c.say(startText)
		st.m.Start(st.admit(someone), stationary{c})
		st.fake.Accept(t)
		synctest.Wait()
		if took := st.drain(30 * time.Second)(); took < 30*time.Second || len(all.of(0).given) > 0 {
			t.Errorf("the drain took %s, and the session was given up %d times", took, len(all.of(0).given))
		}
		c.ended(t, protocol.CloseServerLeaving)
	})
}

// TestMoveWaitsForTheAnswer: a session in mid-answer leaves when the answer was heard, and the checkpoint contains the
// turn.
func TestMoveWaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		c, model := st.begin()
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 48000))
		synctest.Wait()
		wait := st.drain(30 * time.Second)
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		pass(900 * time.Millisecond)
		if len(all.of(0).given) != 0 || c.isOver() {
			t.Fatal("the session left in mid-answer")
		}
		wait()
		c.expect(t, "audio.end a1", "turn.ended completed", "session.moving draining")
		c.ended(t, protocol.CloseMoving)
		if given := all.of(0).given; len(given) != 1 || given[0].Turn != 1 || given[0].Seq < 5 {
			t.Errorf("it was handed off with %+v", given)
		}
	})
}

// TestMoveIsForced: a session that is never quiet leaves after nine tenths of the drain's time.
func TestMoveIsForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		c, model := st.begin()
		c.say(`{"type":"input.text","text":"a long story"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 48000*60))
		synctest.Wait()
		began := time.Now()
		st.drain(30 * time.Second)()
		c.ended(t, protocol.CloseMoving)
		if after := all.of(0).at.Sub(began); after != 27*time.Second {
			t.Errorf("it left after %s", after)
		}
	})
}

// TestNoTurnDuringHandOff: input between the checkpoint and the move begins no turn here, because the next owner would
// not know it.
func TestNoTurnDuringHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		all.stall = make(chan struct{})
		c, _ := st.begin()
		synctest.Wait()
		wait := st.drain(30 * time.Second)
		c.say(`{"type":"input.text","text":"too late"}`)
		pass(time.Second)
		if c.count("turn.started") != 0 {
			t.Error("a turn began after the checkpoint")
		}
		close(all.stall)
		wait()
		c.ended(t, protocol.CloseMoving)
		if c.count("turn.started") != 0 || len(all.of(0).given) != 1 {
			t.Errorf("the client got %q, and the session was handed off %d times", c.log(), len(all.of(0).given))
		}
	})
}

// TestEndedDuringHandOff: a session that ends while the store accepts it, by an operator or its client, is not
// continued. Without such an end it no longer runs here.
func TestEndedDuringHandOff(t *testing.T) {
	for name, tc := range map[string]struct {
		end      func(m *Manager, c *testClient, id string) bool
		received string
		code     websocket.StatusCode
	}{
		"an operator": {func(m *Manager, _ *testClient, id string) bool { return m.End(id) }, "session.ended operator_ended", protocol.CloseDone},
		"the client":  {func(_ *Manager, c *testClient, _ string) bool { c.say(`{"type":"session.end"}`); return true }, "session.ended client_ended", protocol.CloseDone},
		"neither":     {func(*Manager, *testClient, string) bool { return false }, "session.moving draining", protocol.CloseMoving},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, all := moving(t, nil)
				all.stall = make(chan struct{})
				c, model := st.begin()
				synctest.Wait()
				s := st.only()
				wait := st.drain(30 * time.Second)
				model.WaitClosed(t)
				ends := tc.end(st.m, c, s.id)
				if name == "an operator" && !ends {
					t.Error("the session does not run here")
				}
				synctest.Wait()
				close(all.stall)
				wait()
				c.expect(t, tc.received)
				c.ended(t, tc.code)
				if p := all.of(0); len(p.given) != 1 || p.ended != ends {
					t.Errorf("it was handed off %d times, its record has ended: %t", len(p.given), p.ended)
				}
			})
		})
	}
}

// TestMoveFails: if the store refuses the session, it continues with another connection to the model, answers the input
// of the meantime, and tries again; after the drain it ends as without a move.
func TestMoveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		all.refuse, all.stall = store.ErrUnavailable, make(chan struct{})
		c, model := st.begin()
		synctest.Wait()
		wait := st.drain(30 * time.Second)
		model.WaitClosed(t)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		pass(100 * time.Millisecond)
		close(all.stall)
		next := st.fake.Accept(t)
		synctest.Wait()
		if c.count("turn.started") != 1 {
			t.Fatalf("the user's text is lost: %q", c.log())
		}
		answers(c, next, "r1", "a1", "In Vienna.")
		c.expect(t, "turn.started", "audio.start l2.a1", "turn.ended completed")
		for range 8 { // each attempt costs a connection
			if c.isOver() {
				break
			}
			pass(4 * time.Second)
		}
		if took := wait(); took < 30*time.Second {
			t.Errorf("the drain took %s", took)
		}
		c.expect(t, "turn.ended completed", "session.ended server_shutdown")
		c.ended(t, protocol.CloseServerLeaving)
		if tries := all.of(0).tries; tries < 2 {
			t.Errorf("the session was offered %d times", tries)
		}
	})
}

// TestMoveIsReportedLate: the store accepted the session but reports it late, and another process has taken it. It does
// not continue here as well; the next owner reports what happened.
func TestMoveIsReportedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		all.refuse, all.stall = fmt.Errorf("cluster: %w", store.ErrFenced), make(chan struct{})
		c, model := st.begin()
		synctest.Wait()
		wait := st.drain(30 * time.Second)
		model.WaitClosed(t)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		pass(100 * time.Millisecond)
		close(all.stall)
		wait()
		c.expect(t, "session.moving draining")
		c.ended(t, protocol.CloseMoving)
		if p := all.of(0); c.count("turn.started") != 0 || p.tries != 1 || p.ended {
			t.Errorf("it was tried %d times, its record has ended: %t, and the client got %q", p.tries, p.ended, c.log())
		}
	})
}

// TestMoveWithoutAModel: a session whose model cannot be reached leaves at the last moment, as another node may reach
// it. A connection that opens later is closed.
func TestMoveWithoutAModel(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			st, all := moving(t, func(o *Options) {
				o.Transports = map[string]transport.Transport{"fake": &slowAgain{fakeModel: newFakeModel(remembering), release: release, deaf: late}}
			})
			st.fake = st.m.options().Transports["fake"].(*slowAgain).fakeModel
			c, model := st.begin()
			c.say(`{"type":"input.text","text":"where is Ada"}`)
			synctest.Wait()
			model.FailRecv(broken())
			synctest.Wait()
			began := time.Now()
			wait := st.drain(10 * time.Second)
			time.AfterFunc(9500*time.Millisecond, func() { close(release) })
			wait()
			c.expect(t, "provider.reconnecting", "session.moving draining")
			c.ended(t, protocol.CloseMoving)
			if p := all.of(0); len(p.given) != 1 || p.at.Sub(began).Truncate(time.Second) != 9*time.Second {
				t.Errorf("it was handed off %d times, after %s", len(p.given), p.at.Sub(began))
			}
			if n := st.fake.Open(); n != 0 {
				t.Errorf("%d connections to the model are open", n)
			}
		})
	}
}

// slowAgain is a provider whose second connection waits for release; with deaf set, also after it was cancelled.
type slowAgain struct {
	*fakeModel
	release chan struct{}
	deaf    bool
	begun   atomic.Bool
}

func (s *slowAgain) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	if s.begun.Swap(true) {
		if s.deaf {
			ctx = context.WithoutCancel(ctx)
		}
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, scriptedError("dial", transport.KindRetry)
		}
	}
	return s.fakeModel.Connect(ctx, setup)
}

// TestNextOwnerHasTheConversation: if the next node adopts the conversation before the store's answer arrives here, the
// client gets no message about a loss. If the store refuses the session, the loss ends it.
func TestNextOwnerHasTheConversation(t *testing.T) {
	for name, refuse := range map[string]error{"given": nil, "not given": store.ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, all := moving(t, nil)
				all.refuse, all.stall = refuse, make(chan struct{})
				c, _ := st.begin()
				synctest.Wait()
				wait := st.drain(10 * time.Second)
				st.only().voiceLost()
				synctest.Wait()
				if c.isOver() {
					t.Error("the session ended before the store's answer")
				}
				close(all.stall)
				wait()
				if refuse == nil {
					c.ended(t, protocol.CloseMoving)
				} else {
					c.ended(t, protocol.CloseVoiceLost)
				}
			})
		})
	}
}

// TestUnsureSessionsStay: a node that may have lost its sessions does not hand them off.
func TestUnsureSessionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, all := moving(t, nil)
		c, _ := st.begin()
		synctest.Wait()
		all.mu.Lock()
		all.places[0].sure = false
		all.mu.Unlock()
		st.drain(10 * time.Second)()
		c.ended(t, protocol.CloseServerLeaving)
		if n := all.of(0).tries; n != 0 || st.fake.Attempts() != 1 {
			t.Errorf("it was offered %d times, and had %d connections", n, st.fake.Attempts())
		}
	})
}

// TestSessionsThatCannotMove: without resume, or with a model that takes no history, sessions continue until the end of
// the drain, and then end as usual.
func TestSessionsThatCannotMove(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no resume":  func(o *Options) { o.Policy.ResumeGrace = 0 },
		"no others":  func(o *Options) { o.Cluster = nil },
		"no history": func(o *Options) { o.Transports = map[string]transport.Transport{"fake": newFakeModel(hearing)} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, _ := moving(t, change)
				if name == "no history" {
					st.fake = st.m.options().Transports["fake"].(*fakeModel)
				}
				c, model := st.begin()
				synctest.Wait()
				wait := st.drain(10 * time.Second)
				pass(9900 * time.Millisecond)
				if c.isOver() {
					t.Fatal("the session ended before its time")
				}
				wait()
				model.WaitClosed(t)
				c.expect(t, "session.started", "session.ended server_shutdown")
				c.ended(t, protocol.CloseServerLeaving)
			})
		})
	}
}

// TestMoveWithoutAClient: a session whose client is disconnected leaves at the start of the drain. The client is then
// informed here that its session has moved, instead of an error.
func TestMoveWithoutAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &givers{}
		r, _ := comingBackTo(t, remembering, func(o *Options) { o.Cluster = all })
		r.read(-1)
		r.lose()
		pass(time.Millisecond)
		other := r.dial(startText, "") // another session keeps the drain running
		synctest.Wait()
		pass(time.Millisecond)
		gone := r.dial(startText, "")
		synctest.Wait()
		gone.Abort()
		synctest.Wait()
		wait := r.st.drain(20 * time.Second)
		if len(all.of(0).given) != 1 || len(all.of(1).given) != 0 || len(all.of(2).given) != 1 {
			t.Errorf("the two sessions without a client did not leave at once: %+v", r.st.m.Census())
		}
		c := r.dial(r.start(""), "")
		synctest.Wait()
		if c.count("error") != 0 {
			t.Errorf("the client got %q", c.log())
		}
		c.ended(t, protocol.CloseServerLeaving)
		wait()
		other.ended(t, protocol.CloseMoving)
	})
}

// TestResumeOfMovedSession: while a session that has left is being closed here, its client gets no error about an
// unknown session.
func TestResumeOfMovedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &givers{}
		r, _ := comingBackTo(t, remembering, func(o *Options) { o.Cluster = all })
		r.read(-1)
		r.conn.stallWrites() // closing the connection takes time
		wait := r.st.drain(20 * time.Second)
		if len(all.of(0).given) != 1 || r.st.only() == nil {
			t.Fatal("the session has not left, or is already closed")
		}
		c := r.dial(r.start(""), "")
		synctest.Wait()
		if c.count("error") != 0 {
			t.Errorf("the client got %q", c.log())
		}
		c.ended(t, protocol.CloseServerLeaving)
		// The session leaves after a client has found it, and before the client is attached.
		s, late := r.st.only(), newTestClient()
		for token, want := range map[string]*Cause{r.token: causeMoving, "another": causeResume} {
			start := &startMessage{InputRate: s.start.InputRate, OutputRate: s.start.OutputRate, Resume: &protocol.Resume{SessionID: s.id, Token: token}}
			if got := (&startup{m: r.st.m, modelRequest: modelRequest{start: start}}).resumeHere(s, &Admission{Arrival: &Arrival{}, m: r.st.m}, late); got != want {
				t.Errorf("a client that found the session just before got %v, want %v", got, want)
			}
		}
		wait()
	})
}

// TestResumeDuringHandOff: a client that resumes during the hand-off is asked to try again. If the session stays, the
// next attempt succeeds.
func TestResumeDuringHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &givers{refuse: store.ErrUnavailable, stall: make(chan struct{})}
		r, _ := comingBackTo(t, remembering, func(o *Options) { o.Cluster = all })
		r.read(-1)
		wait := r.st.drain(30 * time.Second)
		early := r.dial(r.start(""), "")
		synctest.Wait()
		early.ended(t, protocol.CloseMoving)
		if early.count("") != 0 {
			t.Errorf("the client got %q", early.log())
		}
		close(all.stall)
		r.st.fake.Accept(t)
		synctest.Wait()
		r.comeBack("")
		r.read(-1)
		if len(r.resumed) != 2 {
			t.Error("the client could not resume")
		}
		r.conn.say(`{"type":"session.end"}`)
		wait()
	})
}

// TestTakenSessionEnds: a session that another node has taken ends here immediately: its client is sent there, and
// nothing is handed back.
func TestTakenSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &keepsDesk{}
		st, all := moving(t, func(o *Options) { o.Handoffs = desk })
		a, err := st.m.Admit(someone, Coming{})
		if err != nil {
			t.Fatal(err)
		}
		c := newTestClient()
		c.say(adaStart)
		st.m.Start(a, c)
		model := st.fake.Accept(t)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.")
		kept := desk.times()
		go all.of(0).lost()
		synctest.Wait()
		model.WaitClosed(t)
		c.expect(t, "turn.ended completed", "session.moving taken_over")
		c.ended(t, protocol.CloseMoving)
		if back, now := desk.back(), desk.times(); back != 0 || now != kept {
			t.Errorf("the conversation was handed back %d times, and written %d times after the loss", back, now-kept)
		}
		if n := st.m.Running(); n != 0 {
			t.Errorf("%d sessions remain", n)
		}
	})
}

// TestMoveKeepsTheConversation: the conversation is stored before the session is handed off, and nothing is handed
// back, as the next owner does that.
func TestMoveKeepsTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &keepsDesk{takes: time.Second}
		st, all := moving(t, func(o *Options) { o.Handoffs = desk })
		a, err := st.m.Admit(someone, Coming{})
		if err != nil {
			t.Fatal(err)
		}
		c := newTestClient()
		c.say(adaStart)
		st.m.Start(a, c)
		model := st.fake.Accept(t)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "In Vienna.", Final: true})
		model.EmitAudio("a1", make([]byte, 4800))
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		st.drain(20 * time.Second)()
		c.ended(t, protocol.CloseMoving)
		newest, at := desk.newest()
		if len(newest.Entries) != 2 || newest.Entries[1].Text != "In Vienna." || at.After(all.of(0).at) || desk.back() != 0 {
			t.Errorf("%s after the move the conversation was %+v, handed back %d times", at.Sub(all.of(0).at), newest.Entries, desk.back())
		}
	})
}

// TestCallDuringMove: a tool that still runs when its session must leave is recorded here once, also if the store
// accepts the session only after the drain.
func TestCallDuringMove(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(map[bool]string{false: "the store is fast", true: "the store is slow"}[slow], func(t *testing.T) { callCutOff(t, slow) })
	}
}

func callCutOff(t *testing.T, slow bool) {
	synctest.Test(t, func(t *testing.T) {
		all := &givers{}
		if slow {
			all.stall = make(chan struct{})
			time.AfterFunc(31*time.Second, func() { close(all.stall) })
		}
		tl := newTill(t, func(o *Options) {
			o.Cluster, o.Policy = all, orchestrator.Policy{ResumeGrace: 30 * time.Second}
			o.Transports = map[string]transport.Transport{"fake": newFakeModel(remembering)}
		})
		tl.stage.fake = tl.m.options().Transports["fake"].(*fakeModel)
		tl.takes = 29 * time.Second
		c, model := tl.talk()
		resolve(c, tl.asksToPay(c, model, "u1"), true)
		tl.drain(30 * time.Second)()
		c.ended(t, protocol.CloseMoving)
		if n := len(tl.payments()); n != 1 {
			t.Errorf("%d payments", n)
		}
		var lines []string
		for _, r := range tl.audited.list() {
			if r.ToolID == "pay" && r.Event == "tool_execution" && r.OK {
				lines = append(lines, r.CallID+" "+r.NotDelivered)
			}
		}
		if len(lines) != 1 || !strings.HasSuffix(lines[0], "session_over") {
			t.Errorf("the audit has %q", lines)
		}
	})
}

// TestCarriedClientsLeaveADrainingNode: clients that this node carries to others are released one after another within
// half of the drain's time, so that they connect through another node.
func TestCarriedClientsLeaveADrainingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carries := &holdsAll{}
		st, _ := moving(t, func(o *Options) { o.Cluster = carries })
		clients := make([]*testClient, 4)
		for i := range clients {
			clients[i] = newTestClient()
			clients[i].say(`{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":"voice-there","token":"t","last_seq":1}}`)
			a, err := st.m.Admit(netip.MustParseAddr("127.0.0.1"), Coming{})
			if err != nil {
				t.Fatal(err)
			}
			st.m.Start(a, clients[i])
		}
		synctest.Wait()
		wait := st.drain(20 * time.Second)
		var left []int
		pass(1250 * time.Millisecond)
		for range 4 {
			n := 0
			for _, c := range clients {
				if !c.isOver() {
					n++
				}
			}
			left = append(left, n)
			pass(2500 * time.Millisecond)
		}
		if want := []int{3, 2, 1, 0}; !slices.Equal(left, want) {
			t.Errorf("after each 2.5 s %v clients were carried, want %v", left, want)
		}
		if took := wait(); took > 12*time.Second {
			t.Errorf("the drain took %s", took)
		}
	})
}

// holdsAll is a Cluster that carries every client until it must stop.
type holdsAll struct{ givers }

func (*holdsAll) Carry(ctx context.Context, _ Visitor, c Client) bool {
	<-ctx.Done()
	c.Abort()
	return true
}

// keepsDesk is a Desk that records the writes.
type keepsDesk struct {
	Handoffs // nil: the test uses nothing else
	takes    time.Duration

	mu     sync.Mutex // guards the following fields
	kept   []handoff.Part
	at     time.Time
	handed int
	last   handoff.Part // the part handed back
}

func (d *keepsDesk) Save(_ context.Context, said handoff.Part) error {
	pass(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	said.Entries = slices.Clone(said.Entries)
	d.kept, d.at = append(d.kept, said), time.Now()
	return nil
}

func (d *keepsDesk) HandBack(_ context.Context, said handoff.Part) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	said.Entries = slices.Clone(said.Entries)
	d.handed, d.last = d.handed+1, said
	return nil
}

func (d *keepsDesk) newest() (handoff.Part, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) == 0 {
		return handoff.Part{Entries: []conversation.Entry{}}, d.at
	}
	return d.kept[len(d.kept)-1], d.at
}

func (d *keepsDesk) times() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.kept)
}

func (d *keepsDesk) back() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handed
}

func (d *keepsDesk) Adopt(context.Context, string, uint64, string, user.User) (handoff.Adopted, error) {
	said, _ := d.newest()
	return handoff.Adopted{Entries: said.Entries}, nil
}

func (*keepsDesk) Enter(context.Context, string, user.User) (string, error) { return "", nil }

// TestResultAfterMove (S4): the client does not get the end of a call that ends between the hand-off and the session's
// end here, because the next owner reports the call as lost; the audit contains it once.
func TestResultAfterMove(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		n.takes = 5 * time.Second
		n.calls(model, "u1", "add", `{"to":"Bob","amount":5}`)
		s := n.only()
		s.mu.Lock()
		s.model.handover = &handover{over: make(chan struct{}), left: true}
		close(s.model.handover.over)
		s.end(causeMoving)
		s.step(orchestrator.OfCall{In: calls.Finished{Call: "call_1", Envelope: registry.Envelope{OK: true}}}, time.Now())
		s.mu.Unlock()
		<-s.left
		if c.count("tool.started") != 1 || c.count("tool.ended") != 0 {
			t.Errorf("the client got %q", c.log())
		}
		if all := n.audited.list(); len(all) != 1 || !all[0].OK || all[0].NotDelivered != "session_over" {
			t.Errorf("the audit has %+v", all)
		}
	})
}
