package session

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport"
)

// stage returns a node of the shelf whose models have these capabilities.
func (f *shelf) stage(t *testing.T, id string, caps transport.Capabilities, change func(*Options)) *stage {
	t.Helper()
	return newStage(t, caps, func(o *Options) {
		o.Policy, o.Cluster = orchestrator.Policy{ResumeGrace: 30 * time.Second, Relink: true}, f.node(id)
		if change != nil {
			change(o)
		}
	})
}

// beginsAt begins a session on a node.
func beginsAt(t *testing.T, st *stage) (*returning, *fakeConn) {
	t.Helper()
	return beginsAtWith(t, st, `{"type":"session.start","input_rate":16000,"output_rate":24000}`)
}

// beginsAtWith is beginsAt with another session.start.
func beginsAtWith(t *testing.T, st *stage, start string) (*returning, *fakeConn) {
	t.Helper()
	r := &returning{t: t, st: st, seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
	r.conn = st.connect(start)
	model := st.fake.Accept(t)
	synctest.Wait()
	r.read(-1)
	return r, model
}

// TestTakeover: the node of a session dies between turns. The client resumes through another node with the same session
// and conversation, which the new model gets as history.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		r.read(-1)
		id, before, old := r.id, r.highest, r.token
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		synctest.Wait()
		r.read(-1)
		started := r.conn.last(t, "session.started")
		if started["session_id"] != id || started["resumed"] != true || started["snapshot"] != true || started["seq"].(float64) < float64(before+1000) || r.token == old {
			t.Errorf("the client got %v", started)
		}
		if m := r.conn.last(t, "provider.reconnected"); m["reason"] != "taken_over" || m["how"] != "replayed" {
			t.Errorf("the client got %v", m)
		}
		want := []transport.Past{transport.PastUser{Text: "where is Ada"}, transport.PastAssistant{Text: "In Vienna."}}
		setups := r.st.fake.Setups()
		if got := setups[len(setups)-1]; !slices.Equal(got.History, want) || got.Reanchor == "" {
			t.Errorf("the model got %+v", got)
		}
		if rec := f.record(id); rec.Node != "b" || rec.Epoch != 2 || rec.State != store.SessionLive {
			t.Errorf("the record is %+v", rec)
		}
		r.conn.say(`{"type":"input.text","text":"and Bob"}`)
		synctest.Wait()
		answers(r.conn, next, "r1", "a1", "In Rome.")
		r.conn.expect(t, "session.started", "transcript", "turn.started", "audio.start l1001.a1", "turn.ended completed")
		kept, m := f.checkpoint(t, id)
		if len(kept.History) != 4 || m.State.Turn <= 1 || kept.Epoch != 2 {
			t.Errorf("the checkpoint is %+v, %+v", kept, m.State)
		}
		if n := turnsOf(r.st.only()); n != 2 || m.State.Turn-m.State.Gaps != n {
			t.Errorf("%d turns were counted, want 2; the checkpoint has %+v", n, m.State)
		}
	})
}

// TestResumeOnBehindGateway: a gateway whose store is behind accepts no new session, but clients can resume: a session
// that it runs, and one whose node is dead.
func TestResumeOnBehindGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		for _, resumed := range []string{"where it runs", "after its node has died"} {
			r.st.behind = true
			fresh := r.st.connect(startText)
			synctest.Wait()
			fresh.ended(t, protocol.CloseTryLater)
			r.comeBack(r.position())
			synctest.Wait()
			r.read(-1)
			if started := r.conn.last(t, "session.started"); started["session_id"] != r.id || started["resumed"] != true {
				t.Errorf("%s: the client got %v", resumed, started)
			}
			f.kill("a")
			r.st = f.stage(t, "b", remembering, nil)
		}
	})
}

// TestTakeoverWithOpenTurn: the new node requests the answer of an open turn again, under the number that the client
// knows. An unfinished item is ended.
func TestTakeoverWithOpenTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", speech(4800, 1))
		synctest.Wait()
		r.read(-1)
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		if got := next.NextControl(t); got != (transport.Respond{}) {
			t.Errorf("the model got %#v", got)
		}
		synctest.Wait()
		if m := r.conn.last(t, "audio.end"); m["item_id"] != "a1" || m["audio_ms"] != 100.0 {
			t.Errorf("the client got %v", m)
		}
		answers(r.conn, next, "r1", "a1", "In Vienna.")
		r.conn.expect(t, "session.started", "turn.started", "audio.end a1", "provider.reconnecting", "provider.reconnected", "audio.start l1001.a1", "turn.ended completed")
		if m := r.conn.last(t, "turn.ended"); m["turn"] != 1.0 {
			t.Errorf("the turn ended as %v", m)
		}
	})
}

// TestStrangersTakeNothing: a dead node's session can be resumed only with a valid token, from its origin, and as its
// user. All other attempts get the same answer, and change nothing.
func TestStrangersTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		old := r.token
		r.lose()
		r.comeBack("")
		r.read(-1)
		r.conn.say(`{"type":"ping","t":1}`) // the client has its new token
		synctest.Wait()
		f.kill("a")
		before := f.record(r.id)

		b := f.stage(t, "b", remembering, nil)
		r.st = b
		with := func(token, more string) string {
			return fmt.Sprintf(`{"type":"session.start","input_rate":16000,"output_rate":24000%s,"resume":{"session_id":%q,"token":%q,"last_seq":%d}}`, more, r.id, token, r.highest)
		}
		for name, one := range map[string]struct{ start, origin string }{
			"a guessed token": {with("guessed", ""), ""},
			"an old token":    {with(old, ""), ""},
			"a hash":          {with(before.TokenHashes[0], ""), ""},
			"another user":    {with(r.token, `,"client":{"id":"mallory"}`), ""},
			"another origin":  {with(r.token, ""), "https://evil.example"},
		} {
			c := r.dial(one.start, one.origin)
			synctest.Wait()
			c.expect(t, "error resume_refused")
			c.ended(t, protocol.CloseTicket)
			if after := f.record(r.id); !reflect.DeepEqual(after, before) {
				t.Errorf("%s changes the record from %+v to %+v", name, before, after)
			}
			pass(triesWindow)
		}
		if n := b.fake.Attempts(); n != 0 || b.m.Running() != 0 {
			t.Errorf("%d models were contacted for strangers, and %d sessions run", n, b.m.Running())
		}
		wrong := r.dial(strings.Replace(with(r.token, ""), "16000", "8000", 1), "")
		synctest.Wait()
		wrong.expect(t, "error invalid_message")
		r.comeBack("")
		b.fake.Accept(t)
		r.conn.expect(t, "session.started")
	})
}

// TestTwoTakers: if the client reaches two nodes at once, exactly one of them gets the session; the other asks the
// client to connect again.
func TestTwoTakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		f.kill("a")
		var all []*testClient
		for _, id := range []string{"b", "c"} {
			r.st = f.stage(t, id, remembering, nil)
			for range 2 {
				all = append(all, r.dial(r.start(""), ""))
			}
		}
		synctest.Wait()
		pass(elsewhereTries * elsewherePause)
		synctest.Wait()
		started := 0
		for _, c := range all {
			if c.count("session.started") == 1 && !c.isOver() {
				started++
				continue
			}
			c.mu.Lock()
			code := c.code
			c.mu.Unlock()
			// On the same node a second connection of the client may have replaced the first.
			if code != protocol.CloseMoving && code != protocol.CloseResumedElsewhere {
				t.Errorf("a client was closed with %d: %q", code, c.log())
			}
		}
		if rec := f.record(r.id); started != 1 || rec.Epoch != 2 {
			t.Errorf("%d clients have the session, whose record is %+v", started, rec)
		}
	})
}

// TestHeldDuringTakeover: a node that is taking over a session holds it for the other nodes, so that a client carried
// to it meanwhile tries again.
func TestHeldDuringTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		f.kill("a")
		r.st = f.stage(t, "b", remembering, nil)
		m := r.st.m
		before, meanwhile := m.Holds(r.id), false
		f.taking = func() { meanwhile = m.Holds(r.id) && !m.Runs(r.id) }
		r.comeBack("")
		if before || !meanwhile || !m.Holds(r.id) {
			t.Errorf("held before: %t, during the takeover: %t, afterwards: %t", before, meanwhile, m.Holds(r.id))
		}
		if m.Holds("voice-unknown") {
			t.Error("an unknown session is held")
		}
	})
}

// TestTakeoverWithoutAModel: a node that cannot reach the model gives up the session, and the client continues through
// another node.
func TestTakeoverWithoutAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		r.read(-1)
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.st.fake.Refuse(1000, scriptedError("dial", transport.KindRetry))
		r.comeBack(r.position())
		r.conn.say(`{"type":"input.text","text":"and Bob"}`)
		pass(31 * time.Second)
		synctest.Wait()
		r.read(-1)
		r.conn.expect(t, "session.started", "provider.reconnecting", "session.moving provider_unavailable")
		r.conn.ended(t, protocol.CloseMoving)
		if rec := f.record(r.id); rec.State != store.SessionMoving || rec.Epoch != 2 {
			t.Errorf("the record is %+v", rec)
		}
		r.st = f.stage(t, "c", remembering, nil)
		r.comeBack("")
		next := r.st.fake.Accept(t)
		synctest.Wait()
		if got := next.NextControl(t); got != (transport.Respond{}) {
			t.Errorf("the model got %#v", got)
		}
		setups := r.st.fake.Setups()
		want := []transport.Past{transport.PastUser{Text: "where is Ada"}, transport.PastAssistant{Text: "In Vienna."}, transport.PastUser{Text: "and Bob"}}
		if got := setups[len(setups)-1].History; !slices.Equal(got, want) {
			t.Errorf("the model got %+v", got)
		}
		answers(r.conn, next, "r1", "a1", "In Rome.")
		r.conn.expect(t, "session.started", "provider.reconnected", "audio.start l2001.a1", "turn.ended completed")
	})
}

// countsTakes is a cluster that counts the requests for sessions.
type countsTakes struct {
	Cluster
	asked int
}

func (n *countsTakes) Carry(ctx context.Context, v Visitor, c Client) bool {
	n.asked++
	return n.Cluster.Carry(ctx, v, c)
}

func (n *countsTakes) Take(ctx context.Context, v Visitor) (*Taken, error) {
	n.asked++
	return n.Cluster.Take(ctx, v)
}

// TestLateClientTakesNothing: a client disconnects before its takeover begins. Its session is neither taken nor
// requested, as it would run here without a client; the next client that resumes takes it.
func TestLateClientTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
		f.kill("a")
		b := &countsTakes{Cluster: f.node("b")}
		r.st = f.stage(t, "b", remembering, func(o *Options) { o.Cluster = b })
		late := newTestClient()
		late.gone = true
		late.say(r.start(""))
		r.st.m.Start(r.st.admit(netip.MustParseAddr("198.51.100.9")), late)
		pass(5 * time.Second)
		if b.asked > 0 || f.record(r.id).Epoch != 1 || late.count("session.started") > 0 {
			t.Errorf("the cluster was asked %d times, and the record is %+v", b.asked, f.record(r.id))
		}
		r.comeBack(r.position())
		r.st.fake.Accept(t)
		synctest.Wait()
		r.read(-1)
		if rec := f.record(r.id); rec.Epoch != 2 || !r.resumed[len(r.resumed)-1] {
			t.Errorf("the client did not resume: the record is %+v", rec)
		}
	})
}

// TestTakeoverHasOneCost: usage between the last turn and the gateway's death is included once in the next gateway's
// list and conversation.
func TestTakeoverHasOneCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, desk, table := newShelf(), &keepsDesk{}, prices(t, "fake-model")
		priced := func(o *Options) {
			o.Handoffs, o.Prices = desk, table
			if fake, ok := o.Transports["fake"].(*fakeModel); ok {
				fake.Info.Model = "fake-model"
			}
		}
		uses := func(model *fakeConn, tokens int64) {
			model.Emit(transport.Usage{Tokens: transport.Tokens{Output: tokens, OutputText: tokens}})
			synctest.Wait()
		}
		r, model := beginsAtWith(t, f.stage(t, "a", remembering, priced), adaStart)
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		uses(model, 100)
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		uses(model, 7)
		pass(5 * time.Second) // a checkpoint is written
		r.read(-1)
		f.kill("a")

		r.st = f.stage(t, "b", remembering, priced)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		synctest.Wait()
		uses(next, 20)
		r.conn.say(`{"type":"input.text","text":"where is Bo"}`)
		synctest.Wait()
		answers(r.conn, next, "r2", "a2", "In Oslo.")
		uses(next, 3)
		if got := r.st.m.Sessions()[0].Cost.Micros; got != 130 {
			t.Errorf("the list has %d", got)
		}
		r.conn.say(`{"type":"session.end"}`)
		pass(5 * time.Second)
		synctest.Wait()
		kept := conversation.New("conv_1", "ada", "", time.Now())
		kept.Join(time.Now(), desk.last.Entries...)
		if got := kept.Digest().CostUSDMicros; got != 130 {
			t.Errorf("the conversation has %d", got)
		}
	})
}

func turnsOf(s *session) int { return locked(s, func() int { return s.state.Turns() }) }
