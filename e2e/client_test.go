package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// patience limits a test's wait for an event. It is not a limit on performance.
const patience = testutil.WaitLimit

// happening is an event from the gateway.
type happening struct {
	at    time.Time
	msg   protocol.ServerMessage // nil for audio
	bytes int                    // of audio
	pcm   []byte                 // the audio itself, if a test needs it
	err   error                  // the end of the connection
}

// client is a client that records all events.
type client struct {
	t    testing.TB
	conn *protocol.Conn
	in   chan happening // from its reader; closed with the connection
	seen []happening    // taken from in so far
	done sync.WaitGroup
}

// connect opens a connection without sending anything.
func (st *stack) connect(t testing.TB) *client {
	t.Helper()
	conn, err := protocol.Dial(context.Background(), st.url+"/v1/voice", protocol.DialOptions{Client: st.client})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn, in: make(chan happening, 4096)}
	c.done.Go(c.read)
	t.Cleanup(c.close)
	return c
}

// start opens a session.
func (st *stack) start(t testing.TB, rate int) *client {
	t.Helper()
	c := st.connect(t)
	c.say(&protocol.Start{InputRate: rate, OutputRate: 24000})
	waitFor[*protocol.SessionStarted](c)
	return c
}

// startAs opens a session of a user.
func (st *stack) startAs(t testing.TB, user string) *client {
	t.Helper()
	c := st.connect(t)
	c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Client: &protocol.ClientInfo{ID: user}})
	waitFor[*protocol.SessionStarted](c)
	return c
}

// http sends a request to the gateway's other endpoints.
func (st *stack) http(t testing.TB, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, st.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+operatorsKey)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Close = true // nothing outlives the test
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (c *client) read() {
	defer close(c.in)
	for {
		f, err := c.conn.Read()
		h := happening{at: time.Now(), err: err}
		switch {
		case err != nil:
		case f.Audio:
			h.bytes = len(f.Data)
		default:
			h.msg, h.err = protocol.ParseServer(f.Data)
		}
		c.in <- h
		if h.err != nil {
			return
		}
	}
}

func (c *client) close() {
	c.conn.Abort()
	for range c.in { // until the reader ends
	}
	c.done.Wait()
}

func (c *client) say(m protocol.ClientMessage) {
	c.t.Helper()
	text, err := protocol.EncodeClient(m)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.WriteText(text); err != nil {
		c.t.Fatal(err)
	}
}

// speak sends audio at once, in frames of 20 ms: the gateway accepts up to 5 s ahead of real time, and speech detection
// uses the audio's clock.
func (c *client) speak(rate int, pcm []byte) {
	c.t.Helper()
	for frame := range slices.Chunk(pcm, audio.Bytes(rate, 20*time.Millisecond)) {
		if err := c.conn.WriteAudio(frame); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *client) next() happening {
	c.t.Helper()
	select {
	case h, ok := <-c.in:
		if !ok {
			c.t.Fatalf("the connection is over; before that: %s", c.history())
		}
		c.seen = append(c.seen, h)
		return h
	case <-time.After(patience):
		c.t.Fatalf("no further event; before that: %s", c.history())
	}
	return happening{}
}

// waitFor takes events up to a message of type M. An error message fails the test.
func waitFor[M protocol.ServerMessage](c *client) M {
	c.t.Helper()
	for {
		h := c.next()
		if m, ok := h.msg.(M); ok {
			return m
		}
		if e, ok := h.msg.(*protocol.Error); ok {
			c.t.Fatalf("the gateway reported %s: %s", e.Code, e.Message)
		}
		if h.err != nil {
			c.t.Fatalf("the connection ended: %v; before that: %s", h.err, c.history())
		}
	}
}

// firstOf returns the first message of type M, taken already or later.
func firstOf[M protocol.ServerMessage](c *client) M {
	c.t.Helper()
	if all := messages[M](c); len(all) > 0 {
		return all[0]
	}
	return waitFor[M](c)
}

// ended takes the remaining events and returns the close code and the errors.
func (c *client) ended() (websocket.StatusCode, []*protocol.Error) {
	c.t.Helper()
	for {
		h := c.next()
		if h.err == nil {
			continue
		}
		var errs []*protocol.Error
		for _, h := range c.seen {
			if e, ok := h.msg.(*protocol.Error); ok {
				errs = append(errs, e)
			}
		}
		return protocol.CloseStatus(h.err), errs
	}
}

// history lists the events for a failure.
func (c *client) history() string {
	var out string
	for _, h := range c.seen {
		switch m := h.msg.(type) {
		case nil:
			if h.err != nil {
				out += " end"
			}
		case *protocol.Error:
			out += " error(" + m.Code + ")"
		default:
			out += " " + typeOf(m)
		}
	}
	return out
}

func typeOf(m protocol.ServerMessage) string {
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		return "?"
	}
	var head struct{ Type string }
	if err := json.Unmarshal(text, &head); err != nil {
		return "?"
	}
	return head.Type
}
