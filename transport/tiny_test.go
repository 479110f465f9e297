package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/transport"
)

// The tiny wire is a small, complete example for docs/providers.md: a WebSocket with JSON
// messages of one form. Only the tests of this package use it.

// tinyWire is its row in the table of wires.
func tinyWire() transport.Wire {
	return transport.Wire{Name: "tiny", KeyVariables: []string{"TINY_API_KEY"}, New: func(p transport.Provider) (transport.Transport, error) {
		return &tiny{p}, nil
	}}
}

// message is sent by both sides. Kind determines which fields are used.
type message struct {
	Kind string          `json:"kind"`
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name,omitempty"`
	Text string          `json:"text,omitempty"`
	PCM  []byte          `json:"pcm,omitempty"` // base64 on the wire
	JSON json.RawMessage `json:"json,omitempty"`
}

// tiny implements transport.Transport.
type tiny struct{ provider transport.Provider }

func (t *tiny) Name() string           { return t.provider.Name }
func (t *tiny) Model() string          { return "tiny-1" }
func (t *tiny) Voices(string) []string { return nil }
func (t *tiny) Models() []string       { return nil }
func (t *tiny) Refuses(string) bool    { return false }

// Capabilities is the row of the wire's only model: it reports when the user speaks and
// when the answer was interrupted, and answers automatically.
func (t *tiny) Capabilities(string) transport.Capabilities {
	return transport.Capabilities{SpeechEvents: true, InterruptNotice: true, Tools: transport.ToolsBlock, Source: "this file"}
}

func (t *tiny) fail(op string, kind transport.Kind, code string, err error) *transport.Error {
	if err != nil && strings.Contains(err.Error(), t.provider.APIKey) {
		err = errors.New(strings.ReplaceAll(err.Error(), t.provider.APIKey, "[key]"))
	}
	return &transport.Error{Provider: t.provider.Name, Op: op, Kind: kind, Code: code, Err: err}
}

// Connect dials, sends the setup and waits until the provider is ready.
func (t *tiny) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	client := *t.provider.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	socket, resp, err := ws.Dial(ctx, t.provider.BaseURL, &websocket.DialOptions{
		HTTPClient: &client, HTTPHeader: http.Header{"Authorization": {"Bearer " + t.provider.APIKey}},
	}, ws.Options{Limit: 1 << 20, Budget: ws.Budget{PerSecond: transport.FramesPerSecond, Burst: transport.FrameBurst}})
	switch {
	case err == nil:
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		kind := transport.KindRetry
		if resp.StatusCode < 500 {
			kind = transport.KindInvalid
		}
		return nil, t.fail("dial", kind, strconv.Itoa(resp.StatusCode), err)
	default:
		return nil, t.fail("dial", transport.KindRetry, "", err)
	}
	c := &tinyConn{t: t, ws: socket, info: transport.Info{
		Provider: t.provider.Name, Model: t.Model(), LocalAddr: socket.LocalAddr(), InputRate: 16000, OutputRate: 24000, Capabilities: t.Capabilities(""),
	}}
	stop := context.AfterFunc(ctx, func() { _ = socket.CloseNow() })
	err = c.write(message{Kind: "setup", Text: setup.Instructions})
	for m := (message{}); err == nil && m.Kind != "ready"; {
		var b []byte
		if _, b, err = socket.Read(); err == nil {
			m = c.parse(b)
		}
	}
	if !stop() || err != nil {
		_ = socket.CloseNow()
		return nil, t.fail("setup", transport.KindRetry, "", errors.Join(ctx.Err(), err))
	}
	return c, nil
}

// tinyConn implements transport.Conn.
type tinyConn struct {
	t    *tiny
	ws   *ws.Conn
	info transport.Info

	closed             atomic.Bool
	unknown, malformed atomic.Int64

	// Owned by Recv.
	queue     []transport.Event
	responses int
	item      string // the item of the current answer; empty before the first
	said      string
	heard     string // the user's words so far
	answering bool
}

func (c *tinyConn) write(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return c.ws.Write(websocket.MessageText, b)
}

// parse returns a message; its kind is empty if it cannot be read.
func (c *tinyConn) parse(b []byte) (m message) {
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(b, &m); err != nil && !errors.As(err, &wrong) || m.Kind == "" {
		c.malformed.Add(1)
		return message{}
	}
	return m
}

// Send implements transport.Conn. It drops commands for which the wire has no message.
func (c *tinyConn) Send(ctx context.Context, cmd transport.Command) error {
	defer context.AfterFunc(ctx, func() { _ = c.ws.CloseNow() })()
	var m message
	switch cmd := cmd.(type) {
	case *transport.AudioIn:
		m = message{Kind: "audio", PCM: cmd.PCM}
	case transport.UserText:
		m = message{Kind: "text", Text: cmd.Text}
	case transport.ToolResult:
		m = message{Kind: "result", ID: cmd.Call, JSON: cmd.Output}
	default:
		return nil
	}
	if err := c.write(m); err != nil {
		return c.ended(ctx, "send", err)
	}
	return nil
}

// Notify implements transport.Conn.
func (c *tinyConn) Notify(f func()) { c.ws.Notify(f) }

// Recv implements transport.Conn.
func (c *tinyConn) Recv() (transport.Event, error) {
	for len(c.queue) == 0 {
		_, b, ok, err := c.ws.TryRead()
		switch {
		case err != nil:
			return nil, c.ended(context.Background(), "recv", err)
		case !ok:
			return nil, nil
		}
		if m := c.parse(b); m.Kind != "" {
			c.take(m)
		}
	}
	ev := c.queue[0]
	c.queue = c.queue[1:]
	return ev, nil
}

// take turns a message into events.
func (c *tinyConn) take(m message) {
	switch m.Kind {
	case "begin":
		c.responses++
		c.answering, c.item, c.said = true, fmt.Sprintf("item_%d", c.responses), ""
		if c.heard != "" { // the user's utterance is complete
			c.give(transport.Transcript{Item: "user", Role: transport.RoleUser, Text: c.heard, Final: true})
			c.heard = ""
		}
		c.give(transport.ResponseStarted{ID: c.response()})
	case "say":
		if m.Text != "" {
			c.said += m.Text
			c.give(transport.Transcript{Item: c.item, Role: transport.RoleAssistant, Text: c.said})
		}
		if n := len(m.PCM) &^ 1; n > 0 {
			c.give(&transport.AudioOut{Item: c.item, PCM: m.PCM[:n]})
		}
	case "done":
		c.finish(transport.ResponseCompleted)
	case "interrupted":
		c.give(transport.Interrupted{})
		c.finish(transport.ResponseInterrupted)
	case "speech":
		c.give(transport.SpeechStarted{})
	case "silence":
		c.give(transport.SpeechStopped{}, transport.InputCommitted{})
	case "heard":
		c.heard += m.Text
		c.give(transport.Transcript{Item: "user", Role: transport.RoleUser, Text: c.heard})
	case "call":
		c.give(transport.ToolCall{Call: m.ID, ID: m.ID, Name: m.Name, Args: m.JSON})
	default:
		c.unknown.Add(1)
	}
}

func (c *tinyConn) give(events ...transport.Event) { c.queue = append(c.queue, events...) }
func (c *tinyConn) response() string               { return fmt.Sprintf("response_%d", c.responses) }

// finish ends the answer, if there is one.
func (c *tinyConn) finish(status transport.ResponseStatus) {
	if !c.answering {
		return
	}
	c.answering = false
	c.give(transport.AudioDone{Item: c.item})
	if c.said != "" {
		c.give(transport.Transcript{Item: c.item, Role: transport.RoleAssistant, Text: c.said, Final: true})
	}
	c.give(transport.ResponseDone{ID: c.response(), Status: status})
}

// ended classifies the end of the connection: the table of this wire has one row.
func (c *tinyConn) ended(ctx context.Context, op string, err error) *transport.Error {
	_ = c.ws.CloseNow() // the connection has ended
	switch code := websocket.CloseStatus(err); {
	case c.closed.Load():
		return c.t.fail(op, transport.KindClosed, "", net.ErrClosed)
	case ctx.Err() != nil:
		return c.t.fail(op, transport.KindClosed, "", context.Cause(ctx))
	case code == websocket.StatusPolicyViolation:
		return c.t.fail(op, transport.KindAuth, strconv.Itoa(int(code)), err)
	default:
		return c.t.fail(op, transport.KindRetry, strconv.Itoa(int(code)), err)
	}
}

func (c *tinyConn) Ready() bool          { return c.ws.Ready() }
func (c *tinyConn) Info() transport.Info { return c.info }

func (c *tinyConn) Close() error {
	c.closed.Store(true)
	_ = c.ws.CloseNow() // its error only means that the socket was closed before
	return nil
}

func (c *tinyConn) Stats() transport.Stats {
	return transport.Stats{UnknownEvents: c.unknown.Load(), MalformedEvents: c.malformed.Load()}
}
