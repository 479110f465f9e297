package transport_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// Harness lets [Suite] drive one adapter against a scripted provider. The adapter's
// test implements it.
type Harness struct {
	// Start starts a new provider for one test. It registers with t.Cleanup
	// everything that must be stopped, including goroutines and idle HTTP connections.
	Start func(t *testing.T) Provider

	// Secret is the credential that the provider's adapters use. No error may show it.
	Secret string

	// CloseKinds has the kind that Recv must report when the provider closes an open
	// conversation, by close code.
	CloseKinds map[int]transport.Kind

	// StatusKinds has the kind that Connect must report when the provider refuses the
	// handshake, by HTTP status.
	StatusKinds map[int]transport.Kind

	// First is a message that does not complete the opening of a conversation; empty if the wire has none.
	First string

	// Quiet marks a model without turns: no event reports an interruption, the adapter passes on some silence, and calls get
	// their results together.
	Quiet bool

	client *http.Client  // of the subtest
	open   *atomic.Int64 // connections of the client, if it wraps them
}

// Provider is a scripted provider that accepts connections. Only the test's goroutine calls
// its methods.
type Provider interface {
	// Transport returns an adapter pointed at the provider, with Harness.Secret as its
	// credential, that connects with client.
	Transport(client *http.Client) transport.Transport

	// Refuse makes the provider answer every later handshake with an HTTP status, and with
	// the credential in the body.
	Refuse(status int)

	// Remember makes the provider read a history of that many entries after the setup of every
	// later connection, and confirm them if its protocol does.
	Remember(entries int)

	// Mute makes the provider accept later connections, but send nothing on them, or only first.
	Mute(first string)

	// Accept returns the provider's end of the connection that Connect has opened.
	Accept() Peer
}

// Peer is the provider's end of one connection. It writes the frames that the provider
// would write. It reads only in NextAudio and NextResult: otherwise it behaves like a
// provider that has stalled.
type Peer interface {
	// Begin starts an answer. Say sends a piece of its speech (text may be
	// empty, pcm is a whole number of samples). Finish completes the answer.
	Begin()
	Say(text string, pcm []byte)
	Finish()

	// Interrupt ends the answer as if the user had spoken over it, with all messages
	// that this provider sends in that case.
	Interrupt()

	// UserSaid reports the user's words in the given pieces; the last piece is final.
	UserSaid(pieces ...string)

	// CallTools requests tools in one batch, within the current answer. It uses ID, Name and
	// Args. If this provider ends an answer before it gets results, CallTools ends it too.
	CallTools(calls ...transport.ToolCall)

	// History returns the history that the provider has read because of Remember, in order.
	History() []Remembered

	// NextReconfigure reads the next message, which is the update of instructions and tools, and
	// confirms it if the provider's protocol does. NextItem reads the next message, which adds an
	// entry to the conversation and asks for no answer.
	NextReconfigure() (instructions string, tools []string)
	NextItem() Remembered

	// NextAudio returns the next piece of the user's audio as PCM. NextResult returns the next
	// tool result. Both skip everything else.
	NextAudio() []byte
	NextResult() (id string, output json.RawMessage)

	// Unknown sends a well-formed message of a type that does not exist. Garbage sends a
	// malformed message.
	Unknown()
	Garbage()

	// Close closes the connection with a code and reason.
	Close(code int, reason string)
}

// Remembered is one entry of a history as it came over the wire. Role is "user", "assistant",
// "system" or "tool"; Text has all its words.
type Remembered struct{ Role, Text string }

// Suite runs the tests that every adapter must pass: a subtest for each promise of
// [transport.Conn] and [transport.Transport] that is visible from outside. It uses
// real sockets and takes at most a few seconds of real time. Every subtest runs over each
// kind of connection: one watched by an event loop (on Linux), a socket read by its own
// goroutine, and a connection that does not reveal that it is a socket.
func Suite(t *testing.T, h Harness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"info describes the connection", testInfo},
		{"audio arrives complete and in order", testAudio},
		{"transcripts are complete texts", testTranscripts},
		{"an interrupted answer ends once", testInterrupted},
		{"tools are called in order and results name their calls", testTools},
		{"the user's audio reaches the wire", testUplink},
		{"the history reaches the wire before anything else", testHistory},
		{"instructions and tools change in an open conversation", testReconfigure},
		{"an entry is added without a turn", testAddItem},
		{"unsupported commands are dropped", testDropped},
		{"unknown events are counted", testUnknown},
		{"malformed messages are counted", testGarbage},
		{"close unblocks Recv", testCloseRecv},
		{"close unblocks Send", testCloseSend},
		{"Connect honours its deadline", testConnectDeadline},
		{"Connect's context bounds the opening only", testConnectContext},
		{"close codes have their kinds", testCloseKinds},
		{"handshake statuses have their kinds", testStatusKinds},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			h.open = new(atomic.Int64)
			for name, client := range clients(h.open) {
				t.Run("no leaks, "+name, func(t *testing.T) {
					h.client = client
					test.run(t, h)
				})
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// clients returns a client for each kind of connection. open counts the open connections of the last kind.
func clients(open *atomic.Int64) map[string]*http.Client {
	// dial returns a connection that does not reveal that it is a socket.
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err //nolint:wrapcheck // the error is the dialer's own
		}
		open.Add(1)
		return &wrapped{Conn: c, closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
	return map[string]*http.Client{
		"read by an event loop": nonblock.Client(nil, &nonblock.Loops{}),
		"read by a goroutine":   nonblock.Client(nil, nil),
		"wrapped":               {Transport: &http.Transport{DialContext: dial}},
	}
}

// wrapped is a connection that reports when it is closed.
type wrapped struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (w *wrapped) Close() error {
	defer w.closed()
	return w.Conn.Close()
}

// suitePatience is how long a subtest waits for an event that must come.
const suitePatience = 3 * time.Minute

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), suitePatience)
}

// connect opens a connection to a new provider.
func (h Harness) connect(t *testing.T) (*transport.Listener, Peer) {
	t.Helper()
	return h.dial(t, h.Start(t))
}

func (h Harness) dial(t *testing.T, p Provider) (*transport.Listener, Peer) {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	conn, err := p.Transport(h.client).Connect(ctx, suiteSetup())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return transport.Listen(conn), p.Accept()
}

// suiteSetup is the Setup of every connection in the suite.
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
func recv(t *testing.T, conn *transport.Listener) transport.Event {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	ev, err := conn.Recv(ctx)
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return ev
}

// until returns the events up to the first for which last returns true, with audio copied.
func until(t *testing.T, conn *transport.Listener, last func(transport.Event) bool) []transport.Event {
	t.Helper()
	var events []transport.Event
	for {
		ev := recv(t, conn)
		if out, ok := ev.(*transport.AudioOut); ok {
			ev = &transport.AudioOut{Item: out.Item, PCM: append([]byte(nil), out.PCM...), Rate: out.Rate}
		}
		events = append(events, ev)
		if last(ev) {
			return events
		}
	}
}

// untilDone returns the events up to the n-th ResponseDone.
func untilDone(t *testing.T, conn *transport.Listener, n int) []transport.Event {
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

func send(t *testing.T, conn *transport.Listener, cmd transport.Command) {
	t.Helper()
	ctx, cancel := soon()
	defer cancel()
	if err := conn.Send(ctx, cmd); err != nil {
		t.Fatalf("Send %T: %v", cmd, err)
	}
}

// tone returns n samples that differ for each seed.
func tone(seed, n int) []byte {
	pcm := make([]byte, 2*n)
	for i := range pcm {
		pcm[i] = byte(seed*31 + i*7)
	}
	return pcm
}
