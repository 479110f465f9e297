package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
)

// Conn is one WebSocket connection of the protocol, seen from either side. One
// goroutine may read and one may write; Close and Abort may be called by any, at
// any time.
type Conn struct {
	ws     *ws.Conn
	ticket string
	key    string
}

// What a client may send, of frames of any kind: each costs 1, and 1 more for each full 2 KiB
// of it. A client that sends 20 ms of audio a frame needs 50 a second, and what it has kept for
// two minutes may come at once. More is a flood, and ends the connection.
const (
	FramesPerSecond = 400
	FrameBurst      = 8000
)

// Frame is one message as it came. Data is valid until the next Read.
type Frame struct {
	// Audio: Data is PCM16; otherwise it is a JSON text.
	Audio bool
	Data  []byte
}

// AcceptOptions is how a server accepts.
type AcceptOptions struct {
	// AnyOrigin says that the caller has decided which pages may connect. Otherwise none
	// may: a request with an Origin is refused.
	AnyOrigin bool
	// MaxMessageBytes is the largest message that is read; a larger one closes the
	// connection with 1009. Zero means the constant of that name.
	MaxMessageBytes int
}

// Accept upgrades a request. On failure it has answered the request, and the
// error says why: 400 where the client offers only other subprotocols, or several
// tickets, 403 for a page (see AcceptOptions), 426 where it is no WebSocket request. Only
// [Subprotocol] is ever chosen, and no error tells of a ticket.
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
	key, ok := secretOf(offered, keyPrefix)
	if !ok {
		http.Error(w, "Offer one key, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several keys, or one that is too long")
	}
	if !opts.AnyOrigin && len(r.Header.Values("Origin")) > 0 {
		http.Error(w, "Web pages may not connect to this endpoint.", http.StatusForbidden)
		return nil, errors.New("the client is a web page")
	}
	conn, err := ws.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol},
		// The library's own rule compares names and no schemes: what is decided above stands.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	}, ws.Options{
		Limit:  int64(cmp.Or(opts.MaxMessageBytes, MaxMessageBytes)),
		Budget: ws.Budget{PerSecond: FramesPerSecond, Burst: FrameBurst},
	})
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return &Conn{ws: conn, ticket: ticket, key: key}, nil
}

// DialOptions is how a client connects.
type DialOptions struct {
	Header http.Header
	// Ticket is offered as a subprotocol, as browsers may do it; empty for none.
	Ticket string
	// Key is offered as a subprotocol, as a console does it; empty for none.
	Key string
	// Client dials; nil means http.DefaultClient.
	Client *http.Client
}

// Dial connects to a gateway at url (ws, wss, http or https). ctx bounds the
// opening only.
func Dial(ctx context.Context, url string, opts DialOptions) (*Conn, error) {
	offered := []string{Subprotocol}
	if opts.Ticket != "" {
		offered = append(offered, TicketSubprotocol(opts.Ticket))
	}
	if opts.Key != "" {
		offered = append(offered, keyPrefix+opts.Key)
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

// Ticket is what the client has offered as a subprotocol; empty for none. It is a
// secret.
func (c *Conn) Ticket() string { return c.ticket }

// Key is what the client has offered as a subprotocol to show that it is an operator's; empty
// for none. It is a secret, and nobody has checked it.
func (c *Conn) Key() string { return c.key }

// Read returns the next frame. On the server's side, [Flooded] says of an error that there
// were too many. It holds a buffer only while a frame is there. An error is
// final; CloseStatus tells what the other side said.
func (c *Conn) Read() (Frame, error) {
	typ, data, err := c.ws.Read()
	if err != nil {
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}, nil
}

// CaughtUp returns a time by which everything that had come was read: what is read in this
// call of the function of Notify came after it. Zero where that is not known.
func (c *Conn) CaughtUp() time.Time { return c.ws.CaughtUp() }

// Notify has f called when there may be a frame to read, and one last time after the
// connection is closed, as nonblock.Conn.Notify says. It is called once, and from then on
// TryRead takes the place of Read. f must not wait for anything, and has to call TryRead
// until that has no frame.
func (c *Conn) Notify(f func()) { c.ws.Notify(f) }

// TryRead is Read that does not wait; ok is false where there is no frame yet, or f has had
// its turn and is called again. Only within the function of Notify.
func (c *Conn) TryRead() (f Frame, ok bool, err error) {
	typ, data, ok, err := c.ws.TryRead()
	if err != nil {
		return Frame{}, false, fmt.Errorf("read frame: %w", err)
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}, ok, nil
}

// Ready says that a write of audio will most likely not wait for the other side:
// what was written before has left. False where that is not known. It may be
// called by any goroutine.
func (c *Conn) Ready() bool { return c.ws.Ready() }

// WriteAudio sends PCM16 as one binary frame. The slice is the caller's again
// when it returns.
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

// Close says goodbye with a code and a reason of at most 123 bytes, and waits a
// few seconds for the other side's. A blocked Read or Write then returns an error.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	if err := c.ws.Close(code, reason); err != nil {
		return fmt.Errorf("close websocket: %w", err)
	}
	return nil
}

// Abort drops the connection without a word, at once.
func (c *Conn) Abort() {
	// What CloseNow reports is that it was closed already.
	_ = c.ws.CloseNow()
}

// CloseStatus returns the close code in err's tree, or -1 where there was none.
func CloseStatus(err error) websocket.StatusCode { return websocket.CloseStatus(err) }

// Flooded says whether err is the end of reading because the other side sent more frames than
// it may. The connection is open still, for Close to say so.
func Flooded(err error) bool { return errors.Is(err, ws.ErrFlood) }

// TooBig says whether err is the end of a connection whose other side sent a
// message larger than MaxMessageBytes.
func TooBig(err error) bool { return errors.Is(err, websocket.ErrMessageTooBig) }
