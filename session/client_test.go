package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/protocol"
)

var errClosed = errors.New("test client: closed")

// testClient is the client side of a session, in memory. It works in a synctest bubble.
type testClient struct {
	in     chan protocol.Input // from the test to the session's reader
	closed chan struct{}       // closed by Close or Abort
	next   *protocol.Input     // taken from in, but not by TryReceive; owned by Notify's goroutine

	mu     sync.Mutex // guards the following fields
	got    []string   // written messages, in order: "type …" or "audio N"
	order  []any      // the same: a message as a map, audio as bytes
	texts  []map[string]any
	bytes  int
	code   websocket.StatusCode
	reason string
	over   bool
	gone   bool // the client disconnected before its session.start was read

	answers bool          // whether it answers probes; set before the session begins
	proven  atomic.Uint32 // number of the last answered probe
	stall   chan struct{} // writes wait for it
}

func newTestClient() *testClient {
	return &testClient{in: make(chan protocol.Input, 1024), closed: make(chan struct{})}
}

func (c *testClient) Receive() (protocol.Input, error) {
	select {
	case f := <-c.in:
		return f, nil
	default:
	}
	select {
	case f := <-c.in:
		return f, nil
	case <-c.closed:
		return protocol.Input{}, errClosed
	}
}

// Notify implements Client. The goroutine that calls f ends after Close or Abort.
func (c *testClient) Notify(f func()) {
	go func() {
		for f(); ; f() {
			select {
			case frame := <-c.in:
				c.next = &frame
			case <-c.closed:
				f()
				return
			}
		}
	}()
}

// TryReceive implements Client.
func (c *testClient) TryReceive() (in protocol.Input, ok bool, err error) {
	if c.next != nil {
		in, c.next = *c.next, nil
		return in, true, nil
	}
	select {
	case f := <-c.in:
		return f, true, nil
	default:
	}
	select {
	case <-c.closed:
		return in, false, errClosed
	default:
		return in, false, nil
	}
}

// CaughtUp implements Client: the time is unknown.
func (c *testClient) CaughtUp() time.Time { return time.Time{} }

func (c *testClient) WriteAudio(pcm []byte) error {
	return c.write(func() {
		c.bytes += len(pcm)
		c.order = append(c.order, bytes.Clone(pcm))
		c.got = append(c.got, fmt.Sprintf("audio %d", len(pcm)))
	})
}

func (c *testClient) WriteText(text []byte) error {
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	return c.write(func() {
		line := fmt.Sprint(m["type"])
		for _, key := range []string{"item_id", "code", "status", "reason"} {
			if v, ok := m[key]; ok {
				line += fmt.Sprint(" ", v)
			}
		}
		c.got = append(c.got, line)
		c.texts = append(c.texts, m)
		c.order = append(c.order, m)
	})
}

func (c *testClient) write(note func()) error {
	c.mu.Lock()
	stall := c.stall
	c.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-c.closed:
			return errClosed
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errClosed
	}
	note()
	return nil
}

func (c *testClient) Close(code websocket.StatusCode, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errClosed
	}
	c.code, c.reason, c.over = code, reason, true
	close(c.closed)
	return nil
}

func (c *testClient) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.closed)
	}
}

// Probe implements Client. With answers set, the client answers immediately.
func (c *testClient) Probe(n uint32) error {
	if c.answers {
		c.proven.Store(n)
		c.in <- protocol.Input{Message: &protocol.Ping{T: 1}} // so that the session reads Proven
	}
	return nil
}

// Proven implements Client.
func (c *testClient) Proven() uint32 { return c.proven.Load() }

// Gone implements Client.
func (c *testClient) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over || c.gone
}

// KeepAlive implements Client: a client in a test is never silent.
func (c *testClient) KeepAlive(int, int) bool { return true }

// Ready implements Client: false while writes are stalled.
func (c *testClient) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stall == nil
}

// say sends a message as JSON text.
func (c *testClient) say(text string) { c.in <- protocol.Frame{Data: []byte(text)}.Input() }

// speak sends audio.
func (c *testClient) speak(pcm []byte) { c.in <- protocol.Input{Audio: true, PCM: pcm} }

// stallWrites makes writes hang, like a full socket.
func (c *testClient) stallWrites() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stall = make(chan struct{})
}

// isOver reports whether the gateway closed the connection.
func (c *testClient) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// log returns the written messages.
func (c *testClient) log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.got...)
}

// last returns the newest message of a type.
func (c *testClient) last(t *testing.T, typ string) map[string]any {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.texts) - 1; i >= 0; i-- {
		if c.texts[i]["type"] == typ {
			return c.texts[i]
		}
	}
	t.Fatalf("the client never got %s; it got %s", typ, strings.Join(c.got, ", "))
	return nil
}

// expect fails unless the log contains the lines in this order, possibly among others.
func (c *testClient) expect(t *testing.T, lines ...string) {
	t.Helper()
	got := c.log()
	i := 0
	for _, g := range got {
		if i < len(lines) && strings.HasPrefix(g, lines[i]) {
			i++
		}
	}
	if i < len(lines) {
		t.Fatalf("the client never got %q after %q; it got:\n%s", lines[i], lines[:i], strings.Join(got, "\n"))
	}
}

// ended fails unless the session closed with code.
func (c *testClient) ended(t *testing.T, code websocket.StatusCode) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over || c.code != code {
		t.Fatalf("closed=%t with %d %q, want %d", c.over, c.code, c.reason, code)
	}
}
