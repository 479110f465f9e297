package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
)

// Conn is a WebSocket connection of the protocol, on either side. One goroutine may read and one may write; Close and
// Abort are safe for concurrent use. [ws.Conn] documents the methods that are not here.
type Conn struct {
	*ws.Conn
	ticket string
}

// Limits of a client's frames of any kind. Each frame costs 1, plus 1 for each full 2 KiB. A client with 20 ms of
// audio per frame needs 50 per second, and may send two minutes of buffered audio at once. More is a flood and closes
// the connection.
const (
	FramesPerSecond = 400
	FrameBurst      = 8000
)

// Frame is a received message. Data is valid until the next Read.
type Frame struct {
	// Audio means that Data is PCM16; otherwise Data is JSON text.
	Audio bool
	Data  []byte
}

// Input is a client's frame, decoded: audio, a message, or a mistake.
type Input struct {
	// Audio means that PCM is a frame of audio, valid until the next input.
	Audio bool
	PCM   []byte
	// Message is a message; nil for a mistake.
	Message ClientMessage
	// Mistake describes a frame that could not be decoded.
	Mistake *MessageError
}

// Input decodes a client's frame.
func (f Frame) Input() Input {
	if f.Audio {
		return Input{Audio: true, PCM: f.Data}
	}
	m, err := ParseClient(f.Data)
	if err != nil {
		mistake, _ := errors.AsType[*MessageError](err)
		return Input{Mistake: mistake}
	}
	return Input{Message: m}
}

// AcceptOptions configures Accept.
type AcceptOptions struct {
	// AnyOrigin means that the caller has checked the page. Otherwise requests with an Origin header are refused.
	AnyOrigin bool
	// MaxMessageBytes limits messages; a larger one closes the connection with 1009. Zero means the default.
	MaxMessageBytes int
}

// Accept upgrades a request, for Subprotocol only. On failure it has answered: 400 for other subprotocols or several
// tickets, 403 for a web page (see AcceptOptions), 426 without a WebSocket. Errors contain no ticket.
func Accept(w http.ResponseWriter, r *http.Request, opts AcceptOptions) (*Conn, error) {
	offered := subprotocols(r.Header)
	if len(offered) > 0 && !slices.Contains(offered, Subprotocol) {
		err := fmt.Errorf("the client offers no subprotocol %s", Subprotocol)
		http.Error(w, "This endpoint speaks the WebSocket subprotocol "+Subprotocol+"; offer it, or none.", http.StatusBadRequest)
		return nil, err
	}
	ticket, ok := OfferedSecret(r.Header, ticketPrefix)
	if !ok {
		http.Error(w, "Offer one ticket, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several tickets, or one that is too long")
	}
	if _, ok := OfferedSecret(r.Header, keyPrefix); !ok {
		http.Error(w, "Offer one key, as it was made.", http.StatusBadRequest)
		return nil, errors.New("the client offers several keys, or one that is too long")
	}
	if !opts.AnyOrigin && len(r.Header.Values("Origin")) > 0 {
		http.Error(w, "Web pages may not connect to this endpoint.", http.StatusForbidden)
		return nil, errors.New("the client is a web page")
	}
	conn, err := ws.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol},
		// The library compares hosts but not schemes, so the check above decides.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	}, serverOptions(opts.MaxMessageBytes))
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return &Conn{Conn: conn, ticket: ticket}, nil
}

// Adopt returns the server side of a connection that another node has accepted. stream carries the client's frames;
// early is data already read from it, at most 4 KiB. maxMessage is like AcceptOptions.MaxMessageBytes.
func Adopt(stream net.Conn, early []byte, maxMessage int) *Conn {
	return &Conn{Conn: ws.Adopt(stream, early, serverOptions(maxMessage))}
}

func serverOptions(maxMessage int) ws.Options {
	return ws.Options{
		Limit:  int64(cmp.Or(maxMessage, MaxMessageBytes)),
		Budget: ws.Budget{PerSecond: FramesPerSecond, Burst: FrameBurst},
	}
}

// DialOptions configures Dial.
type DialOptions struct {
	Header http.Header
	// Ticket is offered as a subprotocol, as in browsers; may be empty.
	Ticket string
	// Key is offered as a subprotocol, as by the console; may be empty.
	Key string
	// Back marks the connection as resuming a session, which also a full gateway accepts.
	Back bool
	// Client dials; nil means http.DefaultClient.
	Client *http.Client
}

// Bearer returns the header of a request with a key or a token; it is empty without one.
func Bearer(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

// Dial connects to a gateway at url (ws, wss, http or https). ctx applies only to Dial itself.
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
	return &Conn{Conn: conn}, nil
}

func dialError(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the library's words and the address, which the caller names
		}
		return fmt.Errorf("connect: %w", err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return fmt.Errorf("connect: the server answered %s with a web page; is the path right?", resp.Status)
	}
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, 512))
	if readErr != nil || len(body) == 0 {
		return fmt.Errorf("connect: the server answered %s", resp.Status)
	}
	return fmt.Errorf("connect: the server answered %s: %s", resp.Status, body)
}

// Ticket returns the secret ticket that the client offered as a subprotocol, if any.
func (c *Conn) Ticket() string { return c.ticket }

// Read returns the next frame. On the server, [Flooded] reports whether an error means too many frames. Read holds a
// buffer only while there is a frame. Errors are final; CloseStatus returns the peer's close code.
func (c *Conn) Read() (Frame, error) {
	typ, data, err := c.Conn.Read()
	if err != nil {
		return Frame{}, fmt.Errorf("read frame: %w", err)
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}, nil
}

// Receive is Read on the gateway's side.
func (c *Conn) Receive() (Input, error) {
	f, err := c.Read()
	if err != nil {
		return Input{}, err
	}
	return f.Input(), nil
}

// TryReceive is a nonblocking Receive; ok is false without a frame, or at f's limit: f is called again. Only f may call
// it.
func (c *Conn) TryReceive() (in Input, ok bool, err error) {
	typ, data, ok, err := c.TryRead()
	if err != nil {
		return Input{}, false, fmt.Errorf("read frame: %w", err)
	}
	if !ok {
		return Input{}, false, nil
	}
	return Frame{Audio: typ == websocket.MessageBinary, Data: data}.Input(), true, nil
}

// WriteAudio sends PCM16 as a binary frame. It doesn't keep the slice.
func (c *Conn) WriteAudio(pcm []byte) error {
	if err := c.Conn.Write(websocket.MessageBinary, pcm); err != nil {
		return fmt.Errorf("write audio: %w", err)
	}
	return nil
}

// WriteText sends an encoded message as one text frame.
func (c *Conn) WriteText(message []byte) error {
	if err := c.Conn.Write(websocket.MessageText, message); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Close sends a close frame with a reason of at most 123 bytes, and waits a few seconds for the peer's.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	if err := c.Conn.Close(code, reason); err != nil {
		return fmt.Errorf("close websocket: %w", err)
	}
	return nil
}

// Abort drops the connection without a close frame.
func (c *Conn) Abort() {
	// CloseNow fails only if the connection is already closed.
	_ = c.Conn.CloseNow()
}

// GoAway closes the connection with 1001, like a browser that leaves the page. It waits like Close.
func (c *Conn) GoAway() {
	_ = c.Conn.Close(websocket.StatusGoingAway, "") // a page would not see an error either
}

// CloseStatus returns the close code in err's tree, or -1.
func CloseStatus(err error) websocket.StatusCode { return websocket.CloseStatus(err) }

// Flooded reports whether a read failed because the peer sent too many frames. The connection is still open for Close.
func Flooded(err error) bool { return errors.Is(err, ws.ErrFlood) }

// TooBig reports whether the connection failed because the peer sent too large a message.
func TooBig(err error) bool { return errors.Is(err, websocket.ErrMessageTooBig) }
