package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
)

// Conn is one WebSocket connection of the protocol, on either side. One
// goroutine may read and one may write; Close and Abort may be called concurrently, at
// any time.
type Conn struct {
	ws     *ws.Conn
	ticket string
}

// The limit on a client's frames, of any kind. Each frame costs 1, plus 1 for each full 2 KiB
// in it. A client that sends 20 ms of audio per frame needs 50 a second, and may send at once
// what it buffered for two minutes. More is a flood and ends the connection.
const (
	FramesPerSecond = 400
	FrameBurst      = 8000
)

// Frame is one message as received. Data is valid until the next Read.
type Frame struct {
	// Audio means that Data is PCM16; otherwise Data is JSON text.
	Audio bool
	Data  []byte
}

// AcceptOptions configure Accept.
type AcceptOptions struct {
	// AnyOrigin means that the caller has decided which pages may connect. Otherwise none
	// may: a request with an Origin header is refused.
	AnyOrigin bool
	// MaxMessageBytes is the largest accepted message; a larger one closes the
	// connection with 1009. Zero means the constant MaxMessageBytes.
	MaxMessageBytes int
}

// Accept upgrades a request to a WebSocket. On failure it has answered the request, and the
// error describes why: 400 if the client offers only other subprotocols or several
// tickets, 403 for a web page (see AcceptOptions), 426 if it is not a WebSocket request. Only
// [Subprotocol] is ever chosen, and no error shows a ticket.
func Accept(w http.ResponseWriter, r *http.Request, opts AcceptOptions) (*Conn, error) {
	offered := subprotocols(r.Header)
	if len(offered) > 0 && !slices.Contains(offered, Subprotocol) {
		err := fmt.Errorf("the client offers no subprotocol %s", Subprotocol)
		http.Error(w, "This endpoint speaks the WebSocket subprotocol "+Subprotocol+"; offer it, or none.", http.StatusBadRequest)
		return nil, err
	}
	ticket, ok := secretOf(offered, ticketPrefix)
	if !ok {
		http.Error(w, "Offer one ticket, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several tickets, or one that is too long")
	}
	if _, ok := secretOf(offered, keyPrefix); !ok {
		http.Error(w, "Offer one key, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several keys, or one that is too long")
	}
	if !opts.AnyOrigin && len(r.Header.Values("Origin")) > 0 {
		http.Error(w, "Web pages may not connect to this endpoint.", http.StatusForbidden)
		return nil, errors.New("the client is a web page")
	}
	conn, err := ws.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol},
		// The library's own check compares hosts but not schemes, so the check above decides.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	}, serverOptions(opts.MaxMessageBytes))
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return &Conn{ws: conn, ticket: ticket}, nil
}

// Adopt returns the server's side of a connection that another node has accepted: from now on,
// stream carries the client's frames. early is what has been read from stream already, at most
// 4 KiB. maxMessage is as AcceptOptions.MaxMessageBytes.
func Adopt(stream net.Conn, early []byte, maxMessage int) *Conn {
	return &Conn{ws: ws.Adopt(stream, early, serverOptions(maxMessage))}
}

// serverOptions bound what a client may send.
func serverOptions(maxMessage int) ws.Options {
	return ws.Options{
		Limit:  int64(cmp.Or(maxMessage, MaxMessageBytes)),
		Budget: ws.Budget{PerSecond: FramesPerSecond, Burst: FrameBurst},
	}
}

// Release gives the connection away, without a close frame: it returns the stream, and what has
// been read from it after the last frame. It may be called only before Notify, between two calls
// of Read; then the Conn must not be used any more.
func (c *Conn) Release() (stream io.ReadWriteCloser, unread []byte) { return c.ws.Release() }

// DialOptions configure Dial.
type DialOptions struct {
	Header http.Header
	// Ticket is offered as a subprotocol, as a browser may do; empty means no ticket.
	Ticket string
	// Key is offered as a subprotocol, as the console does; empty means no key.
	Key string
	// Back says that the connection is to come back to a session, so that a gateway that takes no new session
	// accepts it.
	Back bool
	// Client dials; nil means http.DefaultClient.
	Client *http.Client
}

// Dial connects to a gateway at url (ws, wss, http or https). ctx applies only until Dial
// returns.
func Dial(ctx context.Context, url string, opts DialOptions) (*Conn, error) {
	offered := []string{Subprotocol}
	if opts.Ticket != "" {
		offered = append(offered, TicketSubprotocol(opts.Ticket))
	}
	if opts.Key != "" {
		offered = append(offered, keyPrefix+opts.Key)
	}
	if opts.Back {
		offered = append(offered, resumeSubprotocol)
	}
	conn, resp, err := ws.Dial(ctx, url, &websocket.DialOptions{
		Subprotocols:    offered,
		HTTPHeader:      opts.Header,
		HTTPClient:      opts.Client,
		CompressionMode: websocket.CompressionDisabled,
	}, ws.Options{Limit: 16 * MaxMessageBytes})
	if err != nil {
		return nil, dialError(resp, err)
	}
	return &Conn{ws: conn}, nil
}

func dialError(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return fmt.Errorf("connect: %w", err)
	}
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, 512))
	if readErr != nil || len(body) == 0 {
		return fmt.Errorf("connect: the server answered %s", resp.Status)
	}
	return fmt.Errorf("connect: the server answered %s: %s", resp.Status, body)
}

// Ticket returns the ticket that the client offered as a subprotocol; empty if it offered
// none. It is a secret.
func (c *Conn) Ticket() string { return c.ticket }

// Read returns the next frame. On the server's side, [Flooded] reports whether an error means
// that the client sent too many frames. Read holds a buffer only while there is a frame. An
// error is final; CloseStatus returns the close code that the other side sent.
func (c *Conn) Read() (Frame, error) {
	typ, data, err := c.ws.Read()
	if err != nil {
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}, nil
}

// CaughtUp returns a time before which everything that arrived has been read: frames read in
// this call of the function given to Notify arrived after it. Zero if that is unknown.
func (c *Conn) CaughtUp() time.Time { return c.ws.CaughtUp() }

// Notify registers f, which is called when there may be a frame to read, and one last time
// after the connection is closed; see nonblock.Conn.Notify. Notify may be called only once,
// and from then on TryRead replaces Read. f must not block, and must call TryRead until it
// returns no frame.
func (c *Conn) Notify(f func()) { c.ws.Notify(f) }

// TryRead is like Read but does not wait; ok is false if there is no frame yet, or if f has
// reached its limit and will be called again. Only f may call it.
func (c *Conn) TryRead() (f Frame, ok bool, err error) {
	typ, data, ok, err := c.ws.TryRead()
	if err != nil {
		return Frame{}, false, fmt.Errorf("read frame: %w", err)
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}, ok, nil
}

// Ready reports whether a write of audio will most likely not wait for the other side,
// because everything written before has left. It returns false if that is unknown. It may
// be called concurrently.
func (c *Conn) Ready() bool { return c.ws.Ready() }

// Gone reports whether the other side has closed or reset the connection, as far as the kernel knows,
// although what has arrived before may not have been read yet. It is false if that is unknown. It may
// be called concurrently.
func (c *Conn) Gone() bool { return c.ws.Gone() }

// KeepAlive keeps a silent connection open, and reports whether the other side still answers. Call
// it at a fixed interval, from one goroutine at a time; it does not wait. See ws.Conn.KeepAlive.
func (c *Conn) KeepAlive(pingAfter, lostAfter int) bool {
	return c.ws.KeepAlive(pingAfter, lostAfter)
}

// WriteAudio sends PCM16 as one binary frame. The slice belongs to the caller again
// when WriteAudio returns.
func (c *Conn) WriteAudio(pcm []byte) error {
	if err := c.ws.Write(websocket.MessageBinary, pcm); err != nil {
		return fmt.Errorf("write audio: %w", err)
	}
	return nil
}

// WriteText sends an encoded message as one text frame.
func (c *Conn) WriteText(message []byte) error {
	if err := c.ws.Write(websocket.MessageText, message); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Close sends a close frame with a code and a reason of at most 123 bytes, and waits a
// few seconds for the other side's. A blocked Read or Write then returns an error.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	if err := c.ws.Close(code, reason); err != nil {
		return fmt.Errorf("close websocket: %w", err)
	}
	return nil
}

// Abort drops the connection at once, without a close frame.
func (c *Conn) Abort() {
	// CloseNow only fails if the connection was closed already.
	_ = c.ws.CloseNow()
}

// Reset drops the connection as a network does that fails: without a close frame, and with RST
// instead of FIN where that is possible. It is for tests and load tests.
func (c *Conn) Reset() {
	_ = c.ws.Reset() // it may be closed already
}

// GoAway closes the connection as a browser does whose page goes away, with 1001. It waits as Close
// does.
func (c *Conn) GoAway() {
	_ = c.ws.Close(websocket.StatusGoingAway, "") // a page would not learn of an error either
}

// CloseStatus returns the close code in err's tree, or -1 without a close code.
func CloseStatus(err error) websocket.StatusCode { return websocket.CloseStatus(err) }

// Flooded reports whether reading ended with err because the other side sent more frames than
// it may. The connection is still open, so that Close can tell the other side.
func Flooded(err error) bool { return errors.Is(err, ws.ErrFlood) }

// TooBig reports whether the connection ended with err because the other side sent a
// message larger than MaxMessageBytes.
func TooBig(err error) bool { return errors.Is(err, websocket.ErrMessageTooBig) }
