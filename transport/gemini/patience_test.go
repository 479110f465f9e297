package gemini

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// pipes is a network of net.Pipes: a real server and a real client in a synctest bubble with fake time.
type pipes struct {
	conns  chan net.Conn // from the client's dial to the server's Accept
	closed chan struct{} // closed by Close
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble opens a connection inside a synctest bubble.
func bubble(t *testing.T, run func(c *transport.Listener, say func(...string))) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		peers := make(chan *websocket.Conn, 1) // from the handler to the test, once
		over := make(chan struct{})            // closed when the test is over
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = ws.CloseNow() }()
			if _, _, err := ws.Read(context.Background()); err != nil {
				t.Error(err)
			}
			peers <- ws
			<-over
		})}
		go func() { _ = srv.Serve(ln) }()
		client := &http.Client{Transport: &http.Transport{DialContext: ln.dial}}
		tr, err := New(transport.Provider{APIKey: secret, BaseURL: "http://provider", Model: model25, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		say := func(messages ...string) {
			ws := <-peers
			for _, msg := range messages {
				if err := ws.Write(context.Background(), websocket.MessageBinary, []byte(msg)); err != nil {
					t.Error(err)
				}
			}
			peers <- ws
		}
		go say(`{"setupComplete":{}}`)
		c, err := tr.Connect(context.Background(), transport.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		run(transport.Listen(c), say)
		_ = c.Close()
		close(over)
		_ = srv.Close()
		client.CloseIdleConnections()
	})
}

// since receives n events and returns them with the seconds since start.
func since(t *testing.T, c *transport.Listener, start time.Time, n int) []string {
	t.Helper()
	var lines []string
	for range n {
		ev, err := c.Recv(context.Background())
		if err != nil {
			t.Fatalf("after %q: %v", lines, err)
		}
		lines = append(lines, time.Since(start).String()+" "+line(ev))
	}
	return lines
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

// TestTurnCompleteThatNeverFollows: a response ends although the provider is silent (seen: a gateway that was busy for 95
// s). Other messages of the provider do not extend it.
func TestTurnCompleteThatNeverFollows(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		start := time.Now()
		go func() {
			say(speech, interrupted)
			time.AfterFunc(2*time.Second, func() { say(heard("wait")) })
		}()
		wantLines(t, since(t, c, start, 6),
			"0s ResponseStarted {ID:response_1 Exact:false}", "0s AudioOut item_1 480 bytes", "0s Interrupted {}", "0s AudioDone {Item:item_1}",
			`2s Transcript user_1 user "wait"`, "3s ResponseDone response_1 interrupted")
		// The late turnComplete ends nothing; the next turn is complete.
		go say(turnOver, speech, generated, turnOver)
		wantLines(t, since(t, c, start, 5),
			"3s ResponseStarted {ID:response_2 Exact:false}", "3s AudioOut item_2 480 bytes", "3s AudioDone {Item:item_2}",
			`3s Transcript user_1 user "wait" final`, "3s ResponseDone response_2 completed")
	})
}

// TestStallingTurnOnALoop: a stalling turn also ends in time on a connection that an event loop watches. It takes real
// time.
func TestStallingTurnOnALoop(t *testing.T) {
	p := newProvider(t)
	opts := p.options()
	opts.HTTPClient = nonblock.Client(opts.HTTPClient, &nonblock.Loops{})
	c, peer := p.connectWith(opts, transport.Setup{})
	start := time.Now()
	for _, msg := range []string{speech, interrupted} {
		peer.send(msg)
	}
	for {
		ev, err := c.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(transport.ResponseDone); ok {
			break
		}
	}
	if took := time.Since(start); took < turnPatience {
		t.Errorf("the turn was abandoned after %s", took)
	}
}

// TestLateWordsEndTheirTurn: a transcript may arrive after its turn's end.
func TestLateWordsEndTheirTurn(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		start := time.Now()
		go say(speech, generated, turnOver, said("late"))
		wantLines(t, since(t, c, start, 8),
			"0s ResponseStarted {ID:response_1 Exact:false}", "0s AudioOut item_1 480 bytes", "0s AudioDone {Item:item_1}", "0s ResponseDone response_1 completed",
			"0s ResponseStarted {ID:response_2 Exact:false}", `0s Transcript item_2 assistant "late"`,
			`3s Transcript item_2 assistant "late" final`, "3s ResponseDone response_2 completed")
	})
}

// TestMissingTurnComplete: after an interruption without its turnComplete, a turn that ends without generationComplete
// still ends.
func TestMissingTurnComplete(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		start := time.Now()
		go say(interrupted, speech, turnOver)
		wantLines(t, since(t, c, start, 5),
			"0s Interrupted {}", "0s ResponseStarted {ID:response_1 Exact:false}", "0s AudioOut item_1 480 bytes",
			"3s AudioDone {Item:item_1}", "3s ResponseDone response_1 completed")
	})
}

// TestAQuietTurnIsNotHurried: the provider delays turnComplete until the speech should have been played, and tools take
// time.
func TestAQuietTurnIsNotHurried(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		start := time.Now()
		go func() {
			say(called("a", "f"))
			time.AfterFunc(20*time.Second, func() { say(speech, generated) })
			time.AfterFunc(40*time.Second, func() { say(turnOver) })
		}()
		wantLines(t, since(t, c, start, 5),
			"0s ResponseStarted {ID:response_1 Exact:false}", "0s ToolCall call_1 id=a f {}", "20s AudioOut item_1 480 bytes",
			"20s AudioDone {Item:item_1}", "40s ResponseDone response_1 completed")
	})
}

// TestAnAnswerWithoutTurnComplete: a complete and played answer ends without turnComplete, and a late turnComplete ends
// nothing else.
func TestAnAnswerWithoutTurnComplete(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		start := time.Now()
		go say(speech, generated)
		wantLines(t, since(t, c, start, 4),
			"0s ResponseStarted {ID:response_1 Exact:false}", "0s AudioOut item_1 480 bytes", "0s AudioDone {Item:item_1}",
			"30.01s ResponseDone response_1 completed")
		go say(turnOver, speech, generated, turnOver)
		wantLines(t, since(t, c, start, 4),
			"30.01s ResponseStarted {ID:response_2 Exact:false}", "30.01s AudioOut item_2 480 bytes", "30.01s AudioDone {Item:item_2}",
			"30.01s ResponseDone response_2 completed")
	})
}

// TestCloseWhileATurnIsStalling: its timer ends with the connection.
func TestCloseWhileATurnIsStalling(t *testing.T) {
	bubble(t, func(c *transport.Listener, say func(...string)) {
		go say(speech, interrupted)
		since(t, c, time.Now(), 4)
		ended := make(chan error, 1) // from the receiver, once
		go func() {
			_, err := c.Recv(context.Background())
			ended <- err
		}()
		synctest.Wait()
		_ = c.Close()
		if err := <-ended; transport.KindOf(err) != transport.KindClosed {
			t.Errorf("Recv: %v", err)
		}
	})
}
