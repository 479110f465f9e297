package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"voicegw/nonblock"
	"voicegw/transport"
)

// conn implements transport.Conn.
type conn struct {
	// Fixed once connected.
	t         *Transport
	ws        *websocket.Conn
	net       *nonblock.Conn // under ws; nil where it is not ours
	log       *slog.Logger
	info      transport.Info
	manual    bool  // the provider's speech detection is off
	silenceMS int64 // what speech_stopped includes; zero if not known

	// Owned by Recv.
	frame     *frameBuf // the frame in hand, which AudioOut may point into
	audio     transport.AudioOut
	like      likeness // of the last audio
	carry     oddByte
	openAudio []*spokenItem // items whose AudioDone has not been sent
	pending   []transport.Event
	given     int // how many of pending were given out
	texts     texts
	seenCalls callBook
	unknown   map[string]struct{} // types that were logged
	lastDone  string              // the response that ended last

	// Owned by Send.
	up         []byte // the append event, reused
	upBytes    int64  // of audio since the buffer was last emptied
	sentBytes  int64  // of audio since the connection was opened
	sincePause int64  // of audio since the last pause
	upEvents   int    // numbers the client events of Send

	// Used by both.
	malformed, unknowns, slow atomic.Int64
	signs                     atomic.Int64 // see keepalive.go

	keeper  sync.WaitGroup // the keepalive goroutine
	closing sync.Once      // of ws
	done    chan struct{}  // from end to the keepalive goroutine, closed by end

	mu sync.Mutex // guards the following fields
	// cause is why the connection ended, the first reason wins; nil while it lives.
	cause *transport.Error
	// doom is what the provider said before it closes (quota in a failed response).
	doom  *transport.Error
	seq   sequencer
	calls callIDs
	items spokenItems
	pads  padList
}

var _ transport.Conn = (*conn)(nil)

// Ready implements transport.Conn.
func (c *conn) Ready() bool { return c.net != nil && c.net.Ready() }

func newConn(t *Transport, setup transport.Setup) *conn {
	row := rowOf(setup.Model)
	c := &conn{
		t: t, log: t.opts.Logger,
		info: transport.Info{
			Provider: t.opts.Name, Model: setup.Model,
			InputRate: sampleRate, OutputRate: sampleRate,
			Capabilities: capabilitiesOf(row),
		},
		manual: setup.ManualActivity, silenceMS: row.silenceMS,
		done: make(chan struct{}),
	}
	if setup.SilenceMS > 0 {
		c.silenceMS = int64(setup.SilenceMS)
	}
	return c
}

// Info implements transport.Conn.
func (c *conn) Info() transport.Info { return c.info }

// Stats implements transport.Conn.
func (c *conn) Stats() transport.Stats {
	return transport.Stats{
		UnknownEvents: c.unknowns.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load(),
	}
}

// Close implements transport.Conn. It returns when the goroutine of this connection
// has ended, which needs nothing of the provider.
func (c *conn) Close() error {
	c.end(c.fault("close", transport.KindClosed, "", errClosed))
	c.keeper.Wait()
	return nil
}

// end closes the connection for cause, unless it has ended already. It unblocks
// whoever reads or writes.
func (c *conn) end(cause *transport.Error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
		close(c.done)
	}
	c.mu.Unlock()
	// Whoever comes second waits for the first: the socket is closed when end returns.
	c.closing.Do(func() {
		if c.ws != nil {
			// The socket is gone afterwards whatever this says.
			_ = c.ws.CloseNow()
		}
	})
}

// ended returns why the connection ended, or nil.
func (c *conn) ended() *transport.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// watch ends the connection when ctx ends before the returned function is called. A
// context that cannot end costs nothing.
func (c *conn) watch(ctx context.Context, cause func() *transport.Error) func() bool {
	if ctx.Done() == nil {
		return noWatch
	}
	return context.AfterFunc(ctx, func() { c.end(cause()) })
}

func noWatch() bool { return true }

// watchUse is watch for Send and Recv.
func (c *conn) watchUse(ctx context.Context, op string) func() bool {
	if ctx.Done() == nil {
		return noWatch
	}
	return c.watch(ctx, func() *transport.Error {
		err := ctx.Err()
		if cause := context.Cause(ctx); !errors.Is(cause, err) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return c.fault(op, transport.KindClosed, "", err)
	})
}

// fault makes the one error type, without the key.
func (c *conn) fault(op string, kind transport.Kind, code string, err error) *transport.Error {
	return c.t.fault(op, kind, code, err)
}

// providerText is what the provider said, for the log.
func (c *conn) providerText(kind, message, param string) error {
	s := kind + ": " + message
	if param != "" {
		s += " (" + param + ")"
	}
	return errors.New(c.t.redact.text(s))
}

// frameBuf holds one frame, with room behind it for the audio decoded from it.
type frameBuf struct{ b []byte }

const (
	frameBufSize = 32 << 10  // holds 250 ms of audio twice: encoded and decoded
	frameBufKeep = 256 << 10 // larger ones are not kept
)

// framePool is shared by all connections: an idle one holds no buffer, as it is
// taken only when a frame has begun to arrive.
var framePool = sync.Pool{New: func() any { return &frameBuf{make([]byte, 0, frameBufSize)} }}

// releaseFrame gives the frame in hand back to the pool.
func (c *conn) releaseFrame() {
	if c.frame == nil {
		return
	}
	if cap(c.frame.b) <= frameBufKeep {
		framePool.Put(c.frame)
	}
	c.frame = nil
}

// readFrame reads the next data frame, text or binary. It is valid until the next
// readFrame or releaseFrame.
func (c *conn) readFrame() ([]byte, error) {
	c.releaseFrame()
	_, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	c.frame = framePool.Get().(*frameBuf)
	b := c.frame.b[:0]
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, cap(b))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			c.frame.b = b
			return b, nil
		}
		if err != nil {
			c.frame.b = b
			return nil, err
		}
	}
}

// write sends one text frame. It may be called by Send and Recv at once.
func (c *conn) write(frame []byte) error {
	return c.ws.Write(context.Background(), websocket.MessageText, frame)
}

// readError turns the failure of a read into the error that ends the connection.
func (c *conn) readError(op string, err error) *transport.Error {
	c.mu.Lock()
	cause, doom := c.cause, c.doom
	c.mu.Unlock()
	if cause != nil {
		return cause
	}
	var closed websocket.CloseError
	var kind transport.Kind
	var code string
	switch {
	case errors.As(err, &closed):
		kind, code = closeKind(closed.Code, closed.Reason)
	case errors.Is(err, websocket.ErrMessageTooBig):
		kind, code, err = transport.KindRetry, "frame_too_big", errTooBig
	default:
		code = strconv.Itoa(int(websocket.StatusAbnormalClosure))
		kind = closeKinds[websocket.StatusAbnormalClosure]
	}
	if doom != nil && (kind == transport.KindRetry || kind == transport.KindExpired) {
		// It had said why before: the close code only says that it is over.
		kind, code = doom.Kind, doom.Code
	}
	return c.fault(op, kind, code, err)
}
