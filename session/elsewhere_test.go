package session

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"voicegw/protocol"
	"voicegw/store"
)

// nodes is a Cluster that records its calls, and carries clients of the sessions in knows.
type nodes struct {
	knows   string     // a session of another node
	running func() int // sessions of this node, recorded when one leaves; may be nil

	mu    sync.Mutex // guards the following field
	notes []string
}

func (n *nodes) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, text)
}

// has reports whether text was recorded.
func (n *nodes) has(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.notes, text)
}

func (n *nodes) Enter(r store.SessionRecord) Place {
	n.note("begins for " + r.User)
	return leavingPlace{noPlace{}, n}
}

// leavingPlace is a place that records the end of its session.
type leavingPlace struct {
	noPlace
	n *nodes
}

func (p leavingPlace) Leave() {
	if p.n.running != nil {
		p.n.note(fmt.Sprintf("%d running", p.n.running()))
	}
	p.n.note("is over")
}

func (n *nodes) Take(context.Context, Visitor) (*Taken, error) { return nil, ErrNoSession }

func (n *nodes) Lost(context.Context) ([]Lost, error) { return nil, nil }

func (n *nodes) Adopt(context.Context, store.SessionRecord) (*Taken, error) { return nil, ErrNoSession }

func (n *nodes) Carry(_ context.Context, v Visitor, c Client) bool {
	id := v.Start.Resume.SessionID
	n.note("carry " + id + " of " + v.Addr.String() + " at " + v.Origin)
	if id != n.knows {
		return false
	}
	c.Abort() // the client is disconnected when Carry returns
	return true
}

// TestSessionsOfOtherNodes: a session is announced to other nodes until it ends. A client of another node's session is
// carried there without an answer from here. A client carried here is not carried again, and begins no session. A
// session leaves its place before the manager stops counting it.
func TestSessionsOfOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &nodes{knows: "voice-there"}
		r, _ := comingBack(t, func(o *Options) { o.Cluster = others })
		others.running = r.st.m.Running
		r.read(-1)

		resume := func(id string) string {
			return `{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":"` + id + `","token":"t","last_seq":1}}`
		}
		there := r.dial(resume("voice-there"), "https://a.example")
		nowhere := r.dial(resume("voice-nowhere"), "")
		synctest.Wait()
		if len(there.got) != 0 {
			t.Errorf("a client that was carried got %v here", there.got)
		}
		nowhere.ended(t, protocol.CloseTicket)

		for text, code := range map[string]websocket.StatusCode{
			resume("voice-there"): protocol.CloseMoving, // its node has just moved it
			`{"type":"session.start","input_rate":16000,"output_rate":24000}`: protocol.CloseTicket,
		} {
			c := newTestClient()
			c.say(text)
			r.st.m.Start(r.st.m.AdmitCarried(Visitor{Addr: netip.MustParseAddr("192.0.2.1")}), c)
			synctest.Wait()
			c.ended(t, code)
		}
		if got := r.st.m.Running(); got != 1 {
			t.Errorf("%d sessions run, want 1", got)
		}
		r.conn.say(`{"type":"session.end"}`)
		synctest.Wait()
		others.mu.Lock()
		defer others.mu.Unlock()
		want := []string{"begins for " + someone.String(), "carry voice-nowhere of 198.51.100.9 at ", "carry voice-there of 198.51.100.9 at https://a.example", "1 running", "is over"}
		slices.Sort(others.notes[1:3])
		if !slices.Equal(others.notes, want) {
			t.Errorf("the other nodes got %q, want %q", others.notes, want)
		}
	})
}

// TestTokenOfMovingSession: while a session is moving between two other nodes, its client is asked to try again. A
// token that opens no session is refused immediately.
func TestTokenOfMovingSession(t *testing.T) {
	for err, code := range map[error]websocket.StatusCode{ErrElsewhere: protocol.CloseMoving, ErrNoSession: protocol.CloseTicket} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := comingBack(t, func(o *Options) { o.Cluster = &onTheWay{err: err} })
				r.read(-1)
				r.id = "voice-there"
				r.comeBack("")
				pass(elsewhereTries * elsewherePause)
				synctest.Wait()
				r.conn.ended(t, code)
			})
		})
	}
}

// onTheWay is a Cluster in which no node runs the session.
type onTheWay struct {
	nodes
	err error // the result of Take
}

func (n *onTheWay) Take(context.Context, Visitor) (*Taken, error) { return nil, n.err }
