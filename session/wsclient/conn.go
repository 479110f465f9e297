package wsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/coder/websocket"
)

// Conn is one WebSocket connection of the protocol, seen from either side. One
// goroutine may read and one may write; Close and Abort may be called by any, at
// any time.
type Conn struct {
	// Fixed after Accept or Dial.
	ws     *websocket.Conn
	ready  func() bool
	ticket string
	// Owned by the reader.
	buf []byte
}

// Frame is one message as it came. Data is valid until the next Read.
type Frame struct {
	// Audio: Data is PCM16; otherwise it is a JSON text.
	Audio bool
	Data  []byte
}

// AcceptOptions is how a server accepts.
type AcceptOptions struct {
	// Origins are the patterns of foreign origins that may connect, as hosts
	// ("app.example.com", "*.example.com"); the server's own host always may.
	Origins []string
	// MaxMessageBytes is the largest message that is read; a larger one closes the
	// connection with 1009. Zero means the constant of that name.
	MaxMessageBytes int
	// Ready says whether a write to the connection under the request will most likely
	// not wait; see Conn.Ready. Nil means that it is not known.
	Ready func() bool
}

// Accept upgrades a request. On failure it has answered the request, and the
// error says why: 400 where the client offers only other subprotocols, or several
// tickets, 403 for a foreign origin, 426 where it is no WebSocket request. Only
// [Subprotocol] is ever chosen, and no error tells of a ticket.
func Accept(w http.ResponseWriter, r *http.Request, opts AcceptOptions) (*Conn, error) {
	offered := subprotocols(r.Header)
	if len(offered) > 0 && !slices.Contains(offered, Subprotocol) {
		err := fmt.Errorf("the client offers no subprotocol %s", Subprotocol)
		http.Error(w, "This endpoint speaks the WebSocket subprotocol "+Subprotocol+"; offer it, or none.", http.StatusBadRequest)
		return nil, err
	}
	ticket, ok := ticketOf(offered)
	if !ok {
		http.Error(w, "Offer one ticket, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several tickets, or one that is too long")
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:    []string{Subprotocol},
		OriginPatterns:  opts.Origins,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	c := newConn(ws, int64(cmp.Or(opts.MaxMessageBytes, MaxMessageBytes)))
	c.ready, c.ticket = opts.Ready, ticket
	return c, nil
}

// DialOptions is how a client connects.
type DialOptions struct {
	Header http.Header
	// Ticket is offered as a subprotocol, as browsers may do it; empty for none.
	Ticket string
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
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		Subprotocols:    offered,
		HTTPHeader:      opts.Header,
		HTTPClient:      opts.Client,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, dialError(resp, err)
	}
	return newConn(ws, 16*MaxMessageBytes), nil
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

func newConn(ws *websocket.Conn, limit int64) *Conn {
	ws.SetReadLimit(limit)
	return &Conn{ws: ws}
}

// Ticket is what the client has offered as a subprotocol; empty for none. It is a
// secret.
func (c *Conn) Ticket() string { return c.ticket }

// Read returns the next frame. It takes a buffer only once a frame is there, so
// that a silent connection holds none. An error is final; CloseStatus tells what
// the other side said.
func (c *Conn) Read() (Frame, error) {
	// A context that can be cancelled costs a dozen allocations for each frame;
	// Close and Abort end the read instead.
	typ, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	c.buf = c.buf[:0]
	for {
		if len(c.buf) == cap(c.buf) {
			c.buf = append(c.buf, 0)[:len(c.buf)]
		}
		n, err := r.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		if errors.Is(err, io.EOF) {
			return Frame{Audio: typ == websocket.MessageBinary, Data: c.buf}, nil
		}
		if err != nil {
			return Frame{}, fmt.Errorf("read frame: %w", err)
		}
	}
}

// Ready says that a write of audio will most likely not wait for the other side:
// what was written before has left. False where that is not known. It may be
// called by any goroutine.
func (c *Conn) Ready() bool { return c.ready != nil && c.ready() }

// WriteAudio sends PCM16 as one binary frame. The slice is the caller's again
// when it returns.
func (c *Conn) WriteAudio(pcm []byte) error {
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, pcm); err != nil {
		return fmt.Errorf("write audio: %w", err)
	}
	return nil
}

// WriteText sends an encoded message as one text frame.
func (c *Conn) WriteText(message []byte) error {
	if err := c.ws.Write(context.Background(), websocket.MessageText, message); err != nil {
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

// TooBig says whether err is the end of a connection whose other side sent a
// message larger than MaxMessageBytes.
func TooBig(err error) bool { return errors.Is(err, websocket.ErrMessageTooBig) }
