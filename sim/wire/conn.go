package wire

import (
	"errors"
	"net/http"
	"time"

	"voicegw/sim/fault"
)

// ConnOptions describe one accepted connection.
type ConnOptions struct {
	// Subprotocols are those the server would select; the first that the
	// client offers is echoed.
	Subprotocols []string
	// Binary sends binary messages (Gemini) instead of text.
	Binary bool
	// Unknown makes the frame of an unknown event of that type. Nil makes
	// {"type": name}.
	Unknown func(name string) []byte
	// Faults are this connection's. Nil means none.
	Faults *fault.Injector
	// ReadLimit is the longest frame accepted, in bytes. Zero means 32 MiB.
	ReadLimit int64
	// Stats is counted up. Nil counts nowhere.
	Stats *Stats
}

// Frame is one message from the client, or the end of them.
type Frame struct {
	Data   []byte
	Binary bool
	// Err, when set, is why no more frames come; Data is then empty. It is a
	// websocket.CloseError when the client closed.
	Err error
}

// Conn is the server's end of one connection. One goroutine, its owner, calls
// its methods; only End may be called by others. It runs one goroutine of its
// own, which reads.
//
// The owner's loop selects on Frames and on Tick, and calls Flush when Tick fires:
//
//	for {
//		select {
//		case f := <-c.Frames():
//			…
//		case <-c.Tick():
//			rest := c.Flush()
//			…
//		}
//	}
type Conn struct{}

// Accept upgrades r. When it fails it has answered the request. Origins are not checked:
// the simulator is for tests.
func Accept(w http.ResponseWriter, r *http.Request, o ConnOptions) (*Conn, error) {
	return nil, errors.New("wire: not built yet")
}

// Frames carries what the client sends, from the reading goroutine to the
// owner. The last one has Err set. Nobody closes it.
func (c *Conn) Frames() <-chan Frame { return nil }

// Done is closed when the server is ending: the owner should close and return.
func (c *Conn) Done() <-chan struct{} { return nil }

// End asks the owner to finish; Done tells it. Any goroutine may call it.
func (c *Conn) End() {}

// Send sends one frame after consulting the injector at AtFrame and, when
// event is not empty, at AtEvent. While a delay is in force the frame waits in
// line; while a silence is in force it is thrown away. The actions that need
// the protocol are returned, for the owner to carry out. A connection that is
// gone swallows frames: Frames tells the owner of the end.
func (c *Conn) Send(event string, turn int, data []byte) []fault.Action { return nil }

// At reports a point, carries out what a connection can and returns the rest.
func (c *Conn) At(p fault.Point) []fault.Action { return nil }

// Do carries out actions as far as a connection can and returns the rest.
func (c *Conn) Do(as []fault.Action) []fault.Action { return nil }

// Tick fires when something that waited is due: Flush has to be called. It is
// never nil.
func (c *Conn) Tick() <-chan time.Time { return nil }

// Flush sends what waited and is due, and returns the actions of timed faults
// that need the protocol.
func (c *Conn) Flush() []fault.Action { return nil }

// Closed says that the connection was closed or dropped from this side.
func (c *Conn) Closed() bool { return false }

// Close sends what waits, then a close frame (the reason is cut to 123 bytes).
// It does not wait for the client's answer; Release does. Calling it again does nothing.
func (c *Conn) Close(code int, reason string) {}

// Release frees the connection: it gives the client up to 2 s to answer a
// close frame, closes the socket and waits for the reading goroutine. The owner calls it
// exactly once, at the end.
func (c *Conn) Release() {}
