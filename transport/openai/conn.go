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
	speech    pcmDecoder
	like      likeness      // the item of the last audio
	openAudio []*spokenItem // items whose AudioDone has not been sent
	events    eventQueue
	texts     texts
	seenCalls callBook
	unknown   map[string]struct{} // types already logged
	response  responseState

	// Owned by Send.
	sent     sentAudio
	upEvents int // numbers the client events of Send

	// Used by both.
	counters
	progress  atomic.Int64 // events of responses
	truncates atomic.Int64 // truncations without an answer

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
	calls   newest[string]      // the provider's ids of calls that may be answered
	items   newest[*spokenItem] // only Recv writes them, with mu held, so it may read without the lock
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
		manual: setup.ManualActivity, silenceMS: row.silenceMS,
		speech: pcmDecoder{rate: sampleRate, announced: sampleRate},
	}
	if setup.SilenceMS > 0 {
		c.silenceMS = int64(setup.SilenceMS)
	}
	return c
}

// Info implements transport.Conn.
func (c *conn) Info() transport.Info { return c.info }

// Close implements transport.Conn. It does not wait for the provider.
func (c *conn) Close() error {
	c.end(c.t.fault("close", transport.KindClosed, "", errClosed))
	c.keepalive.stop()
	c.mu.Lock()
	if c.late != nil {
		c.late.Stop()
	}
	c.mu.Unlock()
	c.later.Wait()
	return nil
}

// The caller must hold mu, and must call rearm after any change to the deadline.
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

// end closes the connection for cause, unless it has ended already. It unblocks the goroutines that read or write.
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

// watch ends the connection when ctx ends before the returned function is called.
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
		return c.t.fault(op, transport.KindClosed, "", err)
	})
}

func (t *Transport) providerText(kind, message, param string) error {
	s := kind + ": " + message
	if param != "" {
		s += " (" + param + ")"
	}
	return errors.New(t.redact.text(s))
}

// The frame is valid until the next readFrame, which may be called only before Notify.
func (c *conn) readFrame() ([]byte, error) {
	c.speech.release()
	_, frame, err := c.ws.Read()
	return frame, err
}

// write sends one text frame. It may be called concurrently.
func (c *conn) write(frame []byte) error {
	return c.ws.Write(websocket.MessageText, frame)
}

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
	return c.t.fault(op, kind, code, err)
}
