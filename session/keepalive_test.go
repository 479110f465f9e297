package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// tap is a client's end of a network. It counts received pings, and can drop the client's data.
type tap struct {
	net.Conn
	pings atomic.Int64
	mute  atomic.Bool
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	// The other frames in these tests are JSON, and audio of zeros.
	c.pings.Add(int64(bytes.Count(p[:n], []byte{0x89, 0})))
	return n, err
}

func (c *tap) Write(p []byte) (int, error) {
	if c.mute.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// tapped connects clients to a Manager through the gateway's real connections.
type tapped struct {
	t  *testing.T
	ln *testutil.PipeListener
}

func newTapped(t *testing.T, st *stage) *tapped {
	t.Helper()
	ln := testutil.ListenPipe()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := protocol.Accept(w, r, protocol.AcceptOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		st.m.Start(st.admit(someone), conn)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(nonblock.Listener{Listener: ln})
	}()
	t.Cleanup(func() {
		st.m.Close()
		srv.Close()
		<-served
		synctest.Wait()
	})
	return &tapped{t, ln}
}

// dial sends start and returns the first message. A goroutine reads the rest; over gets the time of the end.
func (n *tapped) dial(start string) (wire *tap, client *protocol.Conn, first protocol.SessionStarted, over chan time.Time) {
	n.t.Helper()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := n.ln.Dial(ctx, network, addr)
		wire = &tap{Conn: c}
		return wire, err
	}
	client, err := protocol.Dial(n.t.Context(), "http://gateway", protocol.DialOptions{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(client.Abort)
	write(n.t, client, start)
	f, err := client.Read()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := json.Unmarshal(f.Data, &first); err != nil || first.SessionID == "" {
		n.t.Fatalf("the first message is %s: %v", f.Data, err)
	}
	over = make(chan time.Time, 1)
	go func() {
		for err == nil {
			_, err = client.Read() // it answers pings
		}
		over <- time.Now()
	}()
	return wire, client, first, over
}

const plainStart = `{"type":"session.start","input_rate":16000,"output_rate":24000}`

// TestSilentClientIsPinged: an idle connection carries a ping and its pong at least every 30 s, and stays open.
func TestSilentClientIsPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		wire, _, _, over := newTapped(t, st).dial(plainStart)
		for had := int64(0); had < 20; had++ {
			pass(30 * time.Second)
			synctest.Wait()
			if n := wire.pings.Load(); n <= had {
				t.Fatalf("the client got %d pings within %v", n, time.Duration(had+1)*30*time.Second)
			}
		}
		if n := wire.pings.Load(); n > 24 {
			t.Errorf("the client got %d pings within 10 minutes", n)
		}
		select {
		case <-over:
			t.Error("the gateway closed the connection of a client that answers")
		default:
		}
	})
}

// TestUnansweredPings: a client that answers no pings is disconnected, and can resume its session.
func TestUnansweredPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Policy = orchestrator.Policy{ResumeGrace: 30 * time.Second} })
		network := newTapped(t, st)
		wire, _, first, over := network.dial(plainStart)
		wire.mute.Store(true)
		begun := time.Now()
		if took := (<-over).Sub(begun); took < lostAfter-keepAliveEvery || took > lostAfter+keepAliveEvery {
			t.Errorf("the connection ended after %v of silence", took)
		}
		if n := wire.pings.Load(); n == 0 {
			t.Error("the client got no ping")
		}
		_, _, again, _ := network.dial(fmt.Sprintf(`{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":%q,"token":%q,"last_seq":1}}`,
			first.SessionID, first.ResumeToken))
		if !again.Resumed || again.SessionID != first.SessionID {
			t.Errorf("the client resumed %+v", again)
		}
	})
}

// TestConversationNeedsNoPings: audio in both directions keeps the connection open without pings.
func TestConversationNeedsNoPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		wire, client, _, _ := newTapped(t, st).dial(plainStart)
		model := st.fake.Accept(t)
		for i := range 12 {
			answer(model, i, make([]byte, 4800))
			if err := client.WriteAudio(make([]byte, 640)); err != nil {
				t.Fatal(err)
			}
			pass(15 * time.Second)
		}
		synctest.Wait()
		if n := wire.pings.Load(); n != 0 {
			t.Errorf("the client got %d pings within 3 minutes of conversation", n)
		}
	})
}

// TestListenerIsPinged: a client that only receives gets pings, and is disconnected if it does not answer.
func TestListenerIsPinged(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprint(answers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				wire, _, _, over := newTapped(t, st).dial(plainStart)
				model := st.fake.Accept(t)
				wire.mute.Store(!answers)
				for i := range 12 {
					answer(model, i, make([]byte, 4800))
					pass(15*time.Second + time.Millisecond) // not at the time of a check
				}
				synctest.Wait()
				if n := wire.pings.Load(); n == 0 || n > 8 {
					t.Errorf("the client got %d pings within 3 minutes", n)
				}
				if open := len(over) == 0; open != answers {
					t.Errorf("the connection is open: %v", open)
				}
			})
		})
	}
}
