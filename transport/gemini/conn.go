// Package gemini speaks Gemini Live (BidiGenerateContent) with its own wire code: the Developer API, its ephemeral
// tokens, and Vertex AI. It implements transport.Transport.
//
// Sources for the wire: ai.google.dev/api/live and the Live guides, read 2026-11-20,
// the types of google.golang.org/genai v1.77, and recorded sessions. Where recordings
// and documents differ, the code follows the recordings.
//
// # How the wire becomes events
//
// A response begins with the first content of a model turn (a part of any kind, a tool call, a transcription of speech)
// and ends with turnComplete. If a turn was interrupted and turnComplete does not follow within 3 s, or new content
// begins first, the response ends then. One response spans a whole exchange with tools.
//
// The wire has no names for spoken answers, so this package makes them: item_1, item_2 and so on. An item begins with
// the first speech or transcription of a turn. A new one begins when the model speaks again after a tool that it waited
// for, or after its audio had ended. AudioDone comes once for each item that had audio: at generationComplete,
// interrupted, turnComplete, at a call of a tool that the model waits for, or before the next item. The user's
// utterances are user_1, user_2.
//
// Pieces of a transcript are joined unchanged, because leading spaces count. A transcript is Final at turnComplete, at
// interrupted, when the provider reports it finished, or when the next item begins; text that arrives even later is
// sent again as Final. A user's utterance that began after an interruption belongs to the following turn.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/transport"
)

const (
	// readLimit bounds one message, in bytes.
	readLimit = 4 << 20
	// maxPooled bounds the buffers that are kept for reuse, in bytes.
	maxPooled = 64 << 10

	// maxEvents bounds the events of one message, since they are handled all at once.
	maxEvents = 256

	// maxBeforeSetup bounds how many messages may come before setupComplete.
	maxBeforeSetup = 64

	// inputRate is the sample rate of AudioIn in Hz; bytesPerMS is the size of 1 ms of it.
	inputRate  = 16000
	bytesPerMS = inputRate * 2 / 1000

	// turnPatience is how long a turn may stall before its response is ended.
	turnPatience = 3 * time.Second
	// endPatience is how long turnComplete may take after the answer's audio has had time to play.
	endPatience = 30 * time.Second
	// outputBytesPerMS is the size of 1 ms of AudioOut.
	outputBytesPerMS = outputRate * 2 / 1000
)

type errorText string

func (e errorText) Error() string { return string(e) }

// frame is one message and its audio. raw is valid until the next read; an idle connection must not keep it, nor scan.
type frame struct {
	raw, pcm []byte
	scan     scanner
}

// conn is one open conversation. [transport.Conn] defines which goroutine may call what.
type conn struct {
	// Fixed after Connect.
	t      *Transport
	ws     *ws.Conn
	row    *row // shared by all connections to such a model
	info   transport.Info
	manual bool

	closed atomic.Bool // set by Close
	away   atomic.Bool // a goAway was received
	ready  atomic.Bool // setupComplete was received
	// final is the error that ended Recv: it explains more than that of a Send which fails later.
	final atomic.Pointer[transport.Error]

	sent      atomic.Int64 // audio sent, in bytes
	unknown   atomic.Int64
	malformed atomic.Int64
	slow      atomic.Int64

	calls callBook
	typed typed

	updates atomic.Int64 // updates that were sent and not confirmed by Recv
	// async are the tools during which the model continues to speak. Send replaces the map, which
	// never changes; declared are those of the last setup or update alone, owned by Send.
	async    atomic.Pointer[map[string]bool]
	declared map[string]bool

	// Owned by Recv.
	dialog    dialog
	alike     likeness
	out       transport.AudioOut
	held      *frame // backs the undelivered events and the one delivered last
	err       *transport.Error
	oddFormat bool
	told      map[string]bool // unknown keys already logged; nil before the first
	// patience calls the function given to Notify when a stalling turn of the model must end.
	patience    *time.Timer
	patientTill time.Time
	stalling    stall
}

func (c *conn) Ready() bool { return c.ws.Ready() }

// Connect implements [transport.Transport].
func (t *Transport) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	model := t.opts.modelOr(setup.Model)
	r := t.opts.row(model)
	first, err := t.setupFrame(model, r, setup)
	if err != nil {
		return nil, t.fail("setup", transport.KindInvalid, "", err)
	}
	history, err := historyFrame(r, setup)
	if err != nil {
		return nil, t.fail(transport.OpHistory, transport.KindInvalid, "", err)
	}
	socket, resp, err := ws.Dial(ctx, t.url, &websocket.DialOptions{HTTPClient: t.client, HTTPHeader: t.opts.header()},
		ws.Options{Limit: readLimit, Budget: ws.Budget{PerSecond: transport.FramesPerSecond, Burst: transport.FrameBurst}})
	if err != nil {
		return nil, t.dialError(ctx, resp, err)
	}
	c := t.newConn(socket, r, model, setup)
	c.info.LocalAddr = socket.LocalAddr()
	if err := c.open(ctx, first); err != nil {
		_ = c.Close()
		return nil, err
	}
	if err := c.remember(ctx, history); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (t *Transport) newConn(socket *ws.Conn, r *row, model string, setup transport.Setup) *conn {
	c := &conn{
		t: t, ws: socket, row: r, manual: setup.ManualActivity && !r.translates,
		info: transport.Info{
			Provider: t.opts.Name, Model: model,
			InputRate: inputRate, OutputRate: outputRate, Capabilities: r.caps,
		},
	}
	c.dialog = dialog{
		provider: t.opts.Name, calls: &c.calls, async: &c.async,
		meter: meter{running: r.caps.UsageCumulative},
	}
	async := asyncTools(r, setup.Tools)
	c.declared = async
	c.async.Store(&async)
	return c
}

// open sends the setup and waits until the provider has accepted it. Events that come before are kept for Recv.
func (c *conn) open(ctx context.Context, first []byte) error {
	defer c.closeWith(ctx)()
	if err := c.ws.Write(websocket.MessageText, first); err != nil {
		return c.readError(ctx, "setup", err)
	}
	for range maxBeforeSetup {
		f, err := c.read()
		if err != nil {
			return c.readError(ctx, "setup", fmt.Errorf("%w: %w", errSetupEnded, err))
		}
		// The frame is not released: events that wait for Recv may point into its audio.
		if failed := c.decode(f); failed != nil {
			failed.Op = "setup"
			return failed
		}
		if c.ready.Load() {
			return nil
		}
	}
	return c.t.fail("setup", transport.KindTimeout, "no_setup_complete", errSetupLate)
}

func (c *conn) Info() transport.Info { return c.info }

func (c *conn) Stats() transport.Stats {
	return transport.Stats{
		UnknownEvents: c.unknown.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load(),
	}
}

// pending returns the next event from the messages read so far, or nil.
func (c *conn) pending() (transport.Event, error) {
	if c.closed.Load() {
		c.stopWatching()
		return nil, c.t.fail("recv", transport.KindClosed, "", net.ErrClosed)
	}
	if ev := c.dialog.Next(); ev != nil {
		return ev, nil
	}
	c.release()
	if c.err != nil {
		return nil, c.err
	}
	c.confirm()
	return c.dialog.Next(), nil
}

// take turns a message into events; a nil message means that a turn has stalled too long.
func (c *conn) take(f *frame, err error) {
	switch {
	case err != nil:
		c.err = c.readError(context.Background(), "recv", err)
	case f == nil:
		c.dialog.giveUp()
	default:
		c.held = f
		c.err = c.decode(f)
		if c.err == nil && !c.dialog.Keep(maxEvents) {
			c.err = c.t.fail("recv", transport.KindRetry, "too_many_events", errTooMany)
		}
	}
	if c.err != nil {
		c.final.Store(c.err)
		c.stopWatching()
		return // events received before the end must still be delivered
	}
	c.watch(f != nil)
}

func (c *conn) Notify(f func()) { c.ws.Notify(f) }

func (c *conn) Recv() (transport.Event, error) {
	for {
		ev, err := c.pending()
		if ev != nil || err != nil {
			return ev, err
		}
		_, raw, ok, err := c.ws.TryRead()
		switch {
		case err != nil:
			c.take(nil, err)
		case ok:
			c.take(c.frameOf(raw), nil)
		case c.stalling != stallNone && !time.Now().Before(c.patientTill):
			c.take(nil, nil)
		default:
			return nil, nil
		}
	}
}

// release returns the buffers to the pool. Only unusually large ones are left to the garbage collector.
func (c *conn) release() {
	if c.held == nil {
		return
	}
	if cap(c.held.pcm) <= maxPooled {
		c.held.raw, c.held.scan = nil, scanner{}
		c.t.frames.Put(c.held)
	}
	c.held = nil
}

// After an interruption later messages do not extend the timer: they may belong to the user's next words.
func (c *conn) watch(heard bool) {
	was := c.stalling
	c.stalling = c.dialog.stalling()
	switch {
	case c.stalling == stallNone && was == stallNone:
	case c.stalling == stallNone:
		c.stopWatching()
	case c.patience == nil, was != c.stalling, heard && c.stalling != stallInterrupted:
		c.bePatient()
	}
}

func (c *conn) bePatient() {
	wait := turnPatience
	if c.stalling == stallGenerated {
		wait = endPatience + time.Duration(c.dialog.sounds/outputBytesPerMS)*time.Millisecond
	}
	c.patientTill = time.Now().Add(wait)
	if c.patience != nil {
		c.patience.Reset(wait)
	} else {
		c.patience = time.AfterFunc(wait, c.ws.Nudge)
	}
}

func (c *conn) stopWatching() {
	c.stalling = stallNone
	if c.patience != nil {
		c.patience.Stop()
	}
}

// read accepts text and binary frames, because the service sends JSON in both.
func (c *conn) read() (*frame, error) {
	_, raw, err := c.ws.Read()
	if err != nil {
		return nil, err
	}
	return c.frameOf(raw), nil
}

func (c *conn) frameOf(raw []byte) *frame {
	f := c.t.frames.Get().(*frame)
	f.raw = raw
	return f
}

// closeWith closes the connection when ctx ends before the returned function is called.
func (c *conn) closeWith(ctx context.Context) func() bool {
	if ctx.Done() == nil {
		return noWatch
	}
	return context.AfterFunc(ctx, func() { _ = c.ws.CloseNow() })
}

func noWatch() bool { return true }

func (c *conn) readError(ctx context.Context, op string, err error) *transport.Error {
	var closed websocket.CloseError
	switch {
	case c.closed.Load():
		return c.t.fail(op, transport.KindClosed, "", net.ErrClosed)
	case ctx.Err() != nil && !c.ready.Load():
		return c.t.fail(op, transport.KindOfContext(ctx.Err()),
			"no_setup_complete", fmt.Errorf("the provider did not send setupComplete in time: %w: %w", context.Cause(ctx), err))
	case ctx.Err() != nil:
		return c.t.fail(op, transport.KindOfContext(ctx.Err()), "", fmt.Errorf("%w: %w", context.Cause(ctx), err))
	case errors.As(err, &closed):
		return c.t.fail(op, closeKind(closed.Code, closed.Reason, c.ready.Load(), c.away.Load()), strconv.Itoa(int(closed.Code)), err)
	case errors.Is(err, websocket.ErrMessageTooBig):
		return c.t.fail(op, transport.KindRetry, "message_too_big", err)
	case errors.Is(err, ws.ErrFlood):
		return c.t.fail(op, transport.KindRetry, "flood", err)
	default:
		code := websocket.StatusAbnormalClosure
		return c.t.fail(op, closeKind(code, "", c.ready.Load(), c.away.Load()), strconv.Itoa(int(code)), err)
	}
}

func (c *conn) Close() error {
	c.closed.Store(true)
	_ = c.ws.CloseNow() // the error only means that it was closed already
	return nil
}

func (c *conn) malformedMessage(err error) {
	if c.malformed.Add(1) == 1 {
		c.t.log.Warn("the provider sent an unreadable message; it and later ones are skipped and counted",
			"error", c.t.scrub(err.Error()))
	}
}

// maxTold bounds how many unknown keys one connection logs, maxKey how many bytes of a key it shows.
const (
	maxTold = 16
	maxKey  = 64
)

func (c *conn) unknownKey(key string) {
	c.unknown.Add(1)
	key = c.t.scrub(key)
	key = key[:min(len(key), maxKey)]
	if len(c.told) < maxTold && !c.told[key] {
		if c.told == nil {
			c.told = make(map[string]bool)
		}
		c.told[key] = true
		c.t.log.Info("the provider sent an unknown kind of message; it is skipped and counted", "key", key)
	}
}
