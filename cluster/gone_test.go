package cluster

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/await"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// knows is a directory and the nodes in it: one node runs every session.
type knows struct {
	*store.Directory
	url   string
	asked func() // called when the session is looked for
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

// TestAClientThatIsGoneIsNotCarried: a client ends its connection while its session is looked for. The owner
// is not told of it: it would take that connection for the client's newest, and displace the one over which
// the client has come back meanwhile.
func TestAClientThatIsGoneIsNotCarried(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		var came atomic.Int32
		runs := owner(t, func(_ Hello, c *Client) {
			came.Add(1)
			c.Abort()
		})
		k := &knows{url: runs.url}
		n := NewNode(NodeOptions{Directory: k, Nodes: knownNodes{k}, Peers: runs.peers, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		carried := make(chan bool, 1)
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := protocol.Accept(w, r, protocol.AcceptOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if leaves {
				k.asked = func() { await.True(t, "the client is gone", c.Gone) }
			}
			resume := &protocol.Resume{SessionID: "voice-1", Token: "t"}
			carried <- n.Carry(context.WithoutCancel(r.Context()), session.Visitor{Addr: netip.MustParseAddr("192.0.2.7"), Origin: "https://a.example", Start: &protocol.Start{InputRate: 24000, OutputRate: 24000, Resume: resume}}, c)
			c.Abort()
		}))
		c := dial(t, url)
		if !leaves {
			_, _ = c.Read() // until the owner has ended it
		}
		c.Abort()
		select {
		case is := <-carried:
			if is == leaves || came.Load() > 0 == leaves {
				t.Errorf("the client leaves: %t; it was carried: %t; the owner has seen %d", leaves, is, came.Load())
			}
		case <-time.After(await.Limit):
			t.Fatal("the client still waits")
		}
		n.Close()
	}
}
