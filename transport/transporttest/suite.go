package transporttest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// Harness lets [Suite] drive one adapter against a scripted provider. The adapter's
// test implements it.
type Harness struct {
	// Start starts a provider of its own for one test. It registers with t.Cleanup
	// whatever has to be stopped, goroutines and idle HTTP connections included.
	Start func(t *testing.T) Provider

	// Secret is the credential that the provider's adapters use. No error may show it.
	Secret string

	// CloseKinds says what Recv must report when the provider closes an open
	// conversation with a code.
	CloseKinds map[int]transport.Kind

	// StatusKinds says what Connect must report when the handshake is answered with an
	// HTTP status.
	StatusKinds map[int]transport.Kind

	client *http.Client // of the subtest
}

// Provider is a scripted provider that listens. Its methods are called by the test's
// goroutine only.
type Provider interface {
	// Transport returns an adapter pointed at the provider, with Harness.Secret as its
	// credential, that connects with client.
	Transport(client *http.Client) transport.Transport

	// Refuse makes it answer every handshake from now on with an HTTP status, and with
	// the credential in the body.
	Refuse(status int)

	// Mute makes it accept connections from now on, and say nothing on them.
	Mute()

	// Accept returns the provider's end of the connection that Connect has opened.
	Accept() Peer
}

// Peer is the provider's end of one connection. It writes frames as the provider
// would. It reads only in NextAudio and NextResult: a peer that nobody asks for
// something is a provider that has stalled.
type Peer interface {
	// Begin starts an answer; Say is a piece of what is spoken in it (text may be
	// empty, pcm is a whole number of samples); Finish ends it as complete.
	Begin()
	Say(text string, pcm []byte)
	Finish()

	// Interrupt ends the answer as when the user has spoken over it, with all that
	// this provider says then.
	Interrupt()

	// UserSaid reports what the user said, in the pieces given, completely.
	UserSaid(pieces ...string)

	// CallTools asks for tools in one batch, within the answer begun: ID, Name and
	// Args are used. A provider that ends the answer before it gets results ends it.
	CallTools(calls ...transport.ToolCall)

	// NextAudio returns the next piece of the user's audio as PCM, NextResult the next
	// tool result; both pass over everything else.
	NextAudio() []byte
	NextResult() (id string, output json.RawMessage)

	// Unknown sends a well formed message of a kind that does not exist, Garbage one
	// that is not well formed.
	Unknown()
	Garbage()

	// Close closes the connection with a code and reason.
	Close(code int, reason string)
}

// Suite runs what every adapter has to pass: a subtest for each promise of
// [transport.Conn] and [transport.Transport] that can be seen from outside. It uses
// real sockets and takes a few seconds of real time at most. All is seen over each kind of
// connection: one that a loop watches (on Linux), and those that have a goroutine, a socket
// without a loop and what does not say that it is a socket.
func Suite(t *testing.T, h Harness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"info says what was opened", testInfo},
		{"audio arrives whole and in order", testAudio},
		{"transcripts are whole texts", testTranscripts},
		{"an interrupted answer ends once", testInterrupted},
		{"tools are called in order and answered by name of the call", testTools},
		{"the user's audio reaches the wire", testUplink},
		{"commands without meaning are dropped", testDropped},
		{"unknown events are counted", testUnknown},
		{"garbage is survived and counted", testGarbage},
		{"close unblocks Recv", testCloseRecv},
		{"close unblocks Send", testCloseSend},
		{"Connect honours its deadline", testConnectDeadline},
		{"Connect's context bounds the opening only", testConnectContext},
		{"close codes have their kinds", testCloseKinds},
		{"handshake statuses have their kinds", testStatusKinds},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			for name, client := range clients() {
				t.Run("leaves nothing behind, "+name, func(t *testing.T) {
					h.client = client
					test.run(t, h)
				})
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// clients make connections of each kind.
func clients() map[string]*http.Client {
	return map[string]*http.Client{
		"heard by a loop":      nonblock.Client(nil, &nonblock.Loops{}),
		"heard by a goroutine": nonblock.Client(nil, nil),
		"wrapped":              {Transport: &http.Transport{DialContext: dialWrapped}},
	}
}

// dialWrapped returns a connection that does not say that it is a socket.
func dialWrapped(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err //nolint:wrapcheck // this is the dialer's
	}
	return struct{ net.Conn }{c}, nil
}

// suitePatience is how long a subtest waits for something that must come.
const suitePatience = 3 * time.Minute

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), suitePatience)
}

// connect opens a connection to a fresh provider.
func (h Harness) connect(t *testing.T) (*Listener, Peer) {
	t.Helper()
	return h.dial(t, h.Start(t))
}

func (h Harness) dial(t *testing.T, p Provider) (*Listener, Peer) {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	conn, err := p.Transport(h.client).Connect(ctx, suiteSetup())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return Listen(conn), p.Accept()
}

// suiteSetup is what every connection of the suite is opened with.
func suiteSetup() transport.Setup {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	return transport.Setup{
		Instructions: "Be brief.",
		Tools: []transport.Tool{
			{Name: "first_tool", Description: "The first.", Parameters: schema},
			{Name: "second_tool", Description: "The second.", Parameters: schema},
		},
	}
}

// recv returns the next event.
func recv(t *testing.T, conn *Listener) transport.Event {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	ev, err := conn.Recv(ctx)
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return ev
}

// until returns the events up to the first that last says yes to, audio as copies.
func until(t *testing.T, conn *Listener, last func(transport.Event) bool) []transport.Event {
	t.Helper()
	var events []transport.Event
	for {
		ev := recv(t, conn)
		if out, ok := ev.(*transport.AudioOut); ok {
			ev = &transport.AudioOut{Item: out.Item, PCM: append([]byte(nil), out.PCM...)}
		}
		events = append(events, ev)
		if last(ev) {
			return events
		}
	}
}

// untilDone returns the events up to the n-th ResponseDone.
func untilDone(t *testing.T, conn *Listener, n int) []transport.Event {
	t.Helper()
	return until(t, conn, func(ev transport.Event) bool {
		if _, ok := ev.(transport.ResponseDone); ok {
			n--
		}
		return n == 0
	})
}

// only returns the events of one type.
func only[T transport.Event](events []transport.Event) []T {
	var found []T
	for _, ev := range events {
		if e, ok := ev.(T); ok {
			found = append(found, e)
		}
	}
	return found
}

func send(t *testing.T, conn *Listener, cmd transport.Command) {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	if err := conn.Send(ctx, cmd); err != nil {
		t.Fatalf("Send %T: %v", cmd, err)
	}
}

// tone returns n samples that differ from those of other seeds.
func tone(seed, n int) []byte {
	pcm := make([]byte, 2*n)
	for i := range pcm {
		pcm[i] = byte(seed*31 + i*7)
	}
	return pcm
}
