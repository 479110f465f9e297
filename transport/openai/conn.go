package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/transport"
)

// conn implements transport.Conn.
type conn struct {
	// Fixed once connected.
	t         *Transport
	ws        *ws.Conn
	log       *slog.Logger
	info      transport.Info
	manual    bool  // the provider's speech detection is off
	silenceMS int64 // the silence included in speech_stopped; zero if unknown

	// Owned by Recv.
	decoded   *pcmBuf // the audio of the current frame; nil for a frame without audio
	audio     transport.AudioOut
	like      likeness // the item of the last audio
	carry     oddByte
	openAudio []*spokenItem // items whose AudioDone has not been sent
	pending   []transport.Event
	given     int // how many of pending were delivered
	outRate   int // of the model's speech, in Hz
	texts     texts
	seenCalls callBook
	unknown   map[string]struct{} // types already logged
	lastDone  string              // the response that ended last
	thinks    bool                // the response has an item of reasoning, and nothing newer
	answering string              // the response that was reported as started and not yet as done
	unnamed   int                 // responses to which the provider gave no id
	muted     []string            // responses whose later events are hidden from the caller, oldest first

	// Owned by Send.
	upBytes    int64 // bytes of audio since the buffer was last emptied
	sentBytes  int64 // bytes of audio since the connection was opened
	sincePause int64 // bytes of audio since the last pause
	upEvents   int   // numbers the client events of Send

	// Used by both.
	malformed, unknowns, slow atomic.Int64
	signs                     atomic.Int64 // signs of life; see keepalive.go
	progress                  atomic.Int64 // events of responses
	notified                  atomic.Bool  // Notify was called: incoming frames are read
	truncates                 atomic.Int64 // truncations without an answer

	awaited atomic.Pointer[string] // the event that the setup waits for
	ready   atomic.Bool            // the provider has accepted the setup

	keepalive keepalive
	later     sync.WaitGroup // writes that a turn must not wait for; none is added once cause is set
	closing   sync.Once      // closes ws once

	mu sync.Mutex // guards the following fields
	// cause is why the connection ended, and the first reason wins; nil while it is open.
	cause *transport.Error
	// doom is the reason the provider gave before it closes (quota in a failed response).
	doom *transport.Error
	seq  sequencer
	late *time.Timer // calls overdue when seq has waited long enough; nil before the first wait
	// updates are the event ids of the updates that wait for their confirmation, oldest first.
	updates []string
	calls   callIDs
	items   spokenItems
	pads    padList
}

var _ transport.Conn = (*conn)(nil)

// Ready implements transport.Conn.
func (c *conn) Ready() bool { return c.ws.Ready() }

func newConn(t *Transport, setup transport.Setup) *conn {
	row := rowOf(setup.Model)
	c := &conn{
		t: t, log: t.opts.Logger,
		info: transport.Info{
			Provider: t.opts.Name, Model: setup.Model,
			InputRate: sampleRate, OutputRate: sampleRate,
			Capabilities: t.capabilities(row),
		},
		manual: setup.ManualActivity, silenceMS: row.silenceMS, outRate: sampleRate,
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

// Close implements transport.Conn. It does not wait for the provider.
func (c *conn) Close() error {
	c.end(c.fault("close", transport.KindClosed, "", errClosed))
	c.keepalive.stop()
	c.mu.Lock()
	if c.late != nil {
		c.late.Stop()
	}
	c.mu.Unlock()
	c.later.Wait()
	return nil
}

// rearm sets the timer to the sequencer's deadline. The caller must hold mu, and must call
// it after any change to the deadline.
func (c *conn) rearm() {
	at := c.seq.deadline()
	switch {
	case c.late != nil && (at.IsZero() || c.cause != nil):
		c.late.Stop()
	case at.IsZero() || c.cause != nil:
	case c.late == nil:
		c.late = time.AfterFunc(time.Until(at), c.overdue)
	default:
		c.late.Reset(time.Until(at))
	}
}

// overdue sends what waited for the provider's permission, because the wait has timed out.
func (c *conn) overdue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	send := c.seq.due(time.Now(), c.progress.Load())
	c.rearm()
	if send != nil {
		c.log.Info("response_create_overdue", "provider", c.info.Provider, "event_id", send.event)
		c.writeAside(func() ([]byte, error) { return createFrame(send) })
	}
}

// end closes the connection for cause, unless it has ended already. It unblocks
// the goroutines that read or write.
func (c *conn) end(cause *transport.Error) {
	c.mu.Lock()
	c.cause = cmp.Or(c.cause, cause)
	c.mu.Unlock()
	// A second caller waits for the first: the socket is closed when end returns.
	c.closing.Do(func() {
		if c.ws != nil {
			// The socket is closed afterwards even if this returns an error.
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

// watchUse is like watch, for Send.
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

// fault makes a transport.Error without the key.
func (c *conn) fault(op string, kind transport.Kind, code string, err error) *transport.Error {
	return c.t.fault(op, kind, code, err)
}

// providerText is the provider's error message, for the log.
func (c *conn) providerText(kind, message, param string) error {
	s := kind + ": " + message
	if param != "" {
		s += " (" + param + ")"
	}
	return errors.New(c.t.redact.text(s))
}

// pcmBuf holds the audio of one frame.
type pcmBuf struct{ b []byte }

const pcmBufKeep = 256 << 10 // larger buffers are not kept, in bytes

// pcmPool is shared by all connections: a buffer is taken only for a frame with audio.
var pcmPool = sync.Pool{New: func() any { return &pcmBuf{} }}

// releaseFrame returns the audio buffer of the current frame to the pool.
func (c *conn) releaseFrame() {
	if c.decoded == nil {
		return
	}
	if cap(c.decoded.b) <= pcmBufKeep {
		pcmPool.Put(c.decoded)
	}
	c.decoded = nil
}

// readFrame waits for the next data frame, text or binary. The frame is valid until the next
// readFrame. It may be called only before Notify.
func (c *conn) readFrame() ([]byte, error) {
	c.releaseFrame()
	_, frame, err := c.ws.Read()
	return frame, err
}

// write sends one text frame. It may be called concurrently.
func (c *conn) write(frame []byte) error {
	return c.ws.Write(websocket.MessageText, frame)
}

// readError turns a failed read into the error that ends the connection.
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
		kind, code = closeKind(closed.Code, closed.Reason, c.ready.Load())
	case errors.Is(err, websocket.ErrMessageTooBig):
		kind, code, err = transport.KindRetry, "frame_too_big", errTooBig
	case errors.Is(err, ws.ErrFlood):
		kind, code = transport.KindRetry, "flood"
	default:
		code = strconv.Itoa(int(websocket.StatusAbnormalClosure))
		kind = transport.KindRetry
	}
	if doom != nil && (kind == transport.KindRetry || kind == transport.KindExpired) {
		// The provider gave the reason before; the close code only ends the connection.
		kind, code = doom.Kind, doom.Code
	}
	return c.fault(op, kind, code, err)
}
