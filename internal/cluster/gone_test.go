package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// knows is a directory and its nodes: one node runs every session.
type knows struct {
	*store.Directory
	url   string
	asked func() // called at the lookup of the session
}

func (k *knows) Find(context.Context, string) (store.SessionRecord, error) {
	if k.asked != nil {
		k.asked()
	}
	return store.SessionRecord{ID: "voice-1", Node: "owner", Epoch: 1, State: store.SessionLive}, nil
}

// knownNodes are the nodes of a knows.
type knownNodes struct{ of *knows }

func (n knownNodes) Find(context.Context, string) (store.Node, error) {
	return store.Node{ID: "owner", URL: n.of.url}, nil
}
func (knownNodes) Gone(context.Context, string) (bool, error) { return false, nil }

// TestDisconnectedClientIsNotCarried: a client closes its connection during the lookup of its session, or while the owner
// decides. The owner does not take the connection: it would count as the client's newest, and displace the one over which
// the client has resumed.
func TestDisconnectedClientIsNotCarried(t *testing.T) {
	for name, tc := range map[string]struct {
		leavesFor, leavesAsking bool
	}{
		"it remains":                         {},
		"it leaves while it is looked for":   {leavesFor: true},
		"it leaves while the owner is asked": {leavesAsking: true},
	} {
		t.Run(name, func(t *testing.T) {
			var came atomic.Int32
			conn := make(chan *protocol.Conn, 1)
			holds := func(string) bool {
				if tc.leavesAsking {
					testutil.WaitUntil(t, "the client is gone", (<-conn).Gone)
				}
				return true
			}
			runs := ownerThat(t, Options{Holds: holds, Accept: func(_ Hello, c *Client) {
				came.Add(1)
				c.Abort()
			}})
			k := &knows{url: runs.url}
			n := NewNode(NodeOptions{Directory: k, Nodes: knownNodes{k}, Peers: runs.peers, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			carried := make(chan bool, 1)
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := protocol.Accept(w, r, protocol.AcceptOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				conn <- c
				if tc.leavesFor {
					k.asked = func() { testutil.WaitUntil(t, "the client is gone", c.Gone) }
				}
				resume := &protocol.Resume{SessionID: "voice-1", Token: "t"}
				carried <- n.Carry(context.WithoutCancel(r.Context()), session.Visitor{Addr: netip.MustParseAddr("192.0.2.7"), Origin: "https://a.example", Start: &protocol.Start{InputRate: 24000, OutputRate: 24000, Resume: resume}}, c)
				c.Abort()
			}))
			c := dial(t, url)
			leaves := tc.leavesFor || tc.leavesAsking
			if !leaves {
				_, _ = c.Read() // until the owner has ended it
			}
			c.Abort()
			select {
			case is := <-carried:
				if is == leaves || came.Load() > 0 == leaves {
					t.Errorf("it was carried: %t; the owner got %d", is, came.Load())
				}
			case <-time.After(testutil.WaitLimit):
				t.Fatal("the client still waits")
			}
			n.Close()
		})
	}
}

// TestAnOlderNodeDoesNotConfirm: nodes of a version that neither confirms its clients nor waits for that can pass on a
// client, and take one, as before.
func TestAnOlderNodeDoesNotConfirm(t *testing.T) {
	older := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del(confirmHeader)
			h.ServeHTTP(w, r)
		})
	}
	came := make(chan string, 1)
	p, err := New(Options{Secret: testSecret, Accept: func(_ Hello, c *Client) {
		go func() {
			defer c.Abort()
			_, _ = c.Receive() // session.start
			f, err := c.Read()
			came <- fmt.Sprint(string(f.Data), err)
		}()
	}})
	if err != nil {
		t.Fatal(err)
	}
	url, went := entrance(t, t.Context(), p, serve(t, older(p.Handler())))
	c := dial(t, url)
	for _, text := range []string{testStart, `{"type":"ping","t":1}`} {
		if err := c.WriteText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := <-came, `{"type":"ping","t":1}<nil>`; got != want {
		t.Errorf("after session.start: %s, want %s", got, want)
	}
	if err := <-went; err != nil {
		t.Error(err)
	}
}

// ownDirectory says that a session belongs to this node.
type ownDirectory struct{ Directory }

func (ownDirectory) Find(context.Context, string) (store.SessionRecord, error) {
	return store.SessionRecord{ID: "voice-1", Node: "a", State: store.SessionLive}, nil
}

// TestNodeDoesNotDialItself: a node whose record of a session is old, or in doubt, does not carry the client to itself.
func TestNodeDoesNotDialItself(t *testing.T) {
	n := NewNode(NodeOptions{Directory: ownDirectory{}, Self: func() string { return "a" }}) // without Nodes: asking them would panic
	v := session.Visitor{Start: &protocol.Start{Resume: &protocol.Resume{SessionID: "voice-1"}}}
	if _, err := n.reach(t.Context(), v, nil); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("the session was found elsewhere: %v", err)
	}
}
