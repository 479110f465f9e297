package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/transport"
)

type conn struct {
	// Fixed once connected.
	t         *Transport
	ws        *ws.Conn
	log       *slog.Logger
	info      transport.Info
	manual    bool  // the provider's speech detection is off
	local     bool  // see Local
	silenceMS int64 // the silence included in speech_stopped; zero if unknown

	// Owned by Recv.
	speech    pcmDecoder
	like      likeness      // the item of the last audio
	openAudio []*spokenItem // items whose AudioDone has not been sent
	events    transport.Queue
	texts     texts
	seenCalls callBook
	response  responseState
	committed bool             // the commit of the user's speech was reported before the server's event
	fatal     *transport.Error // an event ends the connection

	// Owned by Send.
	sent     sentAudio
	upEvents int // numbers the client events of Send

	// Used by both.
	unknowns        Unknowns
	malformed, slow atomic.Int64
	progress        atomic.Int64 // events of responses
	truncates       atomic.Int64 // truncations without an answer

	awaited  atomic.Pointer[string] // the event that the setup waits for
	ready    atomic.Bool            // the provider has accepted the setup
	notified atomic.Bool            // Notify was called: incoming frames are read

	later   sync.WaitGroup // writes that a turn must not wait for; none is added once cause is set
	closing sync.Once      // closes ws once

	mu sync.Mutex // guards the following fields
	// cause is why the connection ended, and the first reason wins; nil while it is open.
	cause *transport.Error
	// doom is the reason the provider gave before it closes (quota in a failed response).
	doom *transport.Error
	seq  sequencer
	late *time.Timer // calls overdue when seq has waited long enough; nil before the first wait
	ping *time.Timer // calls keepAlive; nil before the connection is set up
	// updates are the event ids of the updates that wait for their confirmation, oldest first.
	updates []string
	calls   newest[string]      // the provider's ids of calls that may be answered
	items   newest[*spokenItem] // only Recv writes them, with mu held, so it may read without the lock
	pads    padList
}

var _ transport.Conn = (*conn)(nil)

func (c *conn) Ready() bool { return c.ws.Ready() }

func newConn(t *Transport, setup transport.Setup) *conn {
	row := t.ep.dialect.rowOf(setup.Model)
	c := &conn{
		t: t, log: t.opts.Logger,
		info: transport.Info{
			Provider: t.opts.Name, Model: setup.Model,
			InputRate: sampleRate, OutputRate: sampleRate,
			Capabilities: t.capabilities(row),
		},
		manual: setup.ManualActivity, silenceMS: row.silenceMS,
		speech: pcmDecoder{rate: sampleRate, announced: sampleRate},
		local:  t.ep.dialect.local,
	}
	c.seq.plain = c.local
	if setup.SilenceMS > 0 {
		c.silenceMS = int64(setup.SilenceMS)
	}
	return c
}

func (c *conn) Info() transport.Info { return c.info }

// Close implements transport.Conn. It does not wait for the provider.
func (c *conn) Close() error {
	c.end(c.t.Fault("close", transport.KindClosed, "", errors.New("closed by this side")))
	c.mu.Lock()
	for _, timer := range []*time.Timer{c.late, c.ping} {
		if timer != nil {
			timer.Stop()
		}
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
	var send *create
	if c.cause == nil {
		send = c.seq.due(time.Now(), c.progress.Load())
		c.rearm()
	}
	c.mu.Unlock()
	if send != nil {
		c.log.Info("response_create_overdue", "provider", c.info.Provider, "event_id", send.event)
		c.release(send)
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
	return context.AfterFunc(ctx, func() { c.end(cause()) })
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
	kind, code, err := EndOf(err, c.ready.Load())
	if doom != nil && (kind == transport.KindRetry || kind == transport.KindExpired) {
		// The provider gave the reason before; the close code only ends the connection.
		kind, code = doom.Kind, doom.Code
	}
	return c.t.Fault(op, kind, code, err)
}

// take handles a frame. It returns the audio of a usual audio event.
func (c *conn) take(frame []byte) transport.Event {
	if ev, ok := c.fastAudio(frame); ok {
		return ev
	}
	if ev, ok := c.parse(frame); ok {
		c.dispatch(ev)
	}
	c.fatal = cmp.Or(c.fatal, c.t.TooManyEvents(len(c.events.Pending())))
	return nil
}

func (c *conn) dispatch(ev *event) {
	if strings.HasPrefix(ev.Type, "response.") {
		c.progress.Add(1)
	}
	if handle, known := handlers[ev.Type]; handle != nil {
		handle(handler{c}, ev)
	} else if !known {
		c.unknowns.Saw(&c.t.Service, ev.Type)
	}
}

func (c *conn) Notify(f func()) {
	c.notified.Store(true)
	c.ws.Notify(f)
}

func (c *conn) Recv() (transport.Event, error) {
	for {
		if ev := c.events.Next(); ev != nil {
			return ev, nil
		}
		c.speech.release()
		_, frame, ok, err := c.ws.TryRead()
		switch {
		case err != nil:
			c.fatal = c.readError("recv", err)
		case !ok:
			return nil, nil
		default:
			if ev := c.take(frame); ev != nil {
				return ev, nil
			}
		}
		if c.fatal != nil {
			c.end(c.fatal)
			return nil, c.ended()
		}
	}
}

// release sends a response.create that the sequencer returned; it ignores nil.
func (c *conn) release(send *create) {
	if send != nil {
		c.aside(send.frame)
	}
}

// aside writes on a separate goroutine, which Close waits for: a turn must not wait for the network. A failure is not
// returned: the next read fails too, and knows the provider's last words.
func (c *conn) aside(frame func() ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.later.Go(func() {
		if err := c.writeFrame(frame()); err != nil {
			c.log.Debug("frame_lost", "provider", c.info.Provider, "error", err)
		}
	})
}

func (c *conn) Stats() transport.Stats {
	return transport.Stats{UnknownEvents: c.unknowns.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load()}
}

// keepAlive pings a silent provider, and ends the connection if nothing arrives for pongsMissed intervals. A late pong
// counts: pongs 8 to 30 s late were measured with other providers. Before Notify no goroutine reads, so silence means
// nothing.
func (c *conn) keepAlive() {
	if c.notified.Load() && !c.ws.KeepAlive(1, pongsMissed) {
		c.end(c.t.Fault("recv", transport.KindRetry, "keepalive",
			errors.New("the provider has been silent for too long: no frame and no pong")))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.ping.Reset(pingInterval)
	}
}

const maxSetupEvents = 1000

// setUp waits for session.created, sends update and waits for session.updated. ctx limits all of it.
func (c *conn) setUp(ctx context.Context, update []byte) *transport.Error {
	late := func() *transport.Error {
		awaited := *c.awaited.Load()
		return c.t.Fault("setup", transport.KindOfContext(ctx.Err()), "no_"+strings.ReplaceAll(awaited, ".", "_"),
			fmt.Errorf("the provider did not send %s in time: %w", awaited, ctx.Err()))
	}
	c.awaits(typeSessionCreated)
	stop := c.watch(ctx, late)
	err := c.exchange(update)
	if !stop() {
		return late()
	}
	return err
}

// adapt limits the update to the fields of the local server, and adopts its audio formats. created is session.created.
func (c *conn) adapt(update []byte, s *sessionValue, created []byte) ([]byte, *transport.Error) {
	var shown struct{ Session json.RawMessage }
	// The event was decoded before.
	_ = json.Unmarshal(created, &shown)
	update, err := c.fit(update, shown.Session)
	if err != nil {
		return nil, c.t.Fault("setup", transport.KindInvalid, "", fmt.Errorf("encode session.update: %w", err))
	}
	// A format that cannot be used is replaced by the update.
	if hz, err := s.input().hz(sampleRate); err == nil {
		c.info.InputRate = hz
	}
	if hz, err := s.output().hz(sampleRate); err == nil {
		c.info.OutputRate = hz
	}
	return update, nil
}

func (c *conn) awaits(event string) { c.awaited.Store(&event) }

func (c *conn) exchange(update []byte) *transport.Error {
	created, frame, err := c.await(typeSessionCreated)
	if err != nil {
		return err
	}
	c.adopt(&created.Session)
	if c.local {
		if update, err = c.adapt(update, &created.Session, frame); err != nil {
			return err
		}
	}
	c.awaits(typeSessionUpdated)
	writeErr := c.write(update)
	updated, _, err := c.await(typeSessionUpdated) // even after a failed write: the read finds the reason
	switch {
	case err != nil:
		return err
	case writeErr != nil:
		return c.readError("setup", writeErr)
	}
	c.adopt(&updated.Session)
	in, out, bad := updated.Session.rates(c.info.InputRate, c.info.OutputRate)
	if bad != nil {
		return c.t.Fault("setup", transport.KindInvalid, codeAudioFormat, bad)
	}
	c.info.InputRate, c.info.OutputRate = in, out
	c.speech.rate, c.speech.announced = out, out
	return nil
}

// codeAudioFormat is the code of a failure about an announced format of audio.
const codeAudioFormat = "audio_format"

func (s *sessionValue) input() audioFormat { return cmp.Or(s.Audio.Input.Format, s.InputFormat) }

func (s *sessionValue) output() audioFormat { return cmp.Or(s.Audio.Output.Format, s.OutputFormat) }

// rates returns the server's rates in Hz; in and out are their defaults.
func (s *sessionValue) rates(in, out int) (inHz, outHz int, err error) {
	if inHz, err = s.input().hz(in); err != nil {
		return 0, 0, fmt.Errorf("%w, for the user's speech", err)
	}
	if outHz, err = s.output().hz(out); err != nil {
		return 0, 0, fmt.Errorf("%w, for the model's speech", err)
	}
	return inHz, outHz, nil
}

// await returns the next event of a wanted type; its frame is valid until the next one is read. An error event is
// returned as the error.
func (c *conn) await(wanted ...string) (*event, []byte, *transport.Error) {
	for range maxSetupEvents {
		_, frame, err := c.ws.Read()
		if err != nil {
			return nil, nil, c.readError("setup", fmt.Errorf("the connection ended before %s: %w", wanted[0], err))
		}
		switch ev, ok := c.parse(frame); {
		case !ok:
		case ev.Type == typeError:
			// An unknown code means that the setup will not be accepted next time either.
			kind := cmp.Or(transport.KindOfCode(ev.Error.Code, ev.Error.Type), transport.KindInvalid)
			return nil, nil, c.t.reported("setup", kind, &ev.Error)
		case slices.Contains(wanted, ev.Type):
			return ev, frame, nil
		}
	}
	return nil, nil, c.t.Fault("setup", transport.KindTimeout, "no_"+strings.ReplaceAll(wanted[0], ".", "_"),
		fmt.Errorf("the provider did not answer the setup within the first events: %s is missing", wanted[0]))
}

func (c *conn) adopt(s *sessionValue) {
	if s.ID != "" {
		c.info.SessionID = s.ID
	}
	if s.Model != "" {
		c.info.Model = s.Model
	}
	if s.ExpiresAt > 0 {
		c.info.ExpiresAt = time.Unix(s.ExpiresAt, 0).UTC()
	}
	if ms := cmp.Or(s.Audio.Input.TurnDetection.SilenceMS, s.TurnDetection.SilenceMS); ms != nil {
		c.silenceMS = max(*ms, 0)
	}
}

func (t *Transport) reported(op string, kind transport.Kind, e *errorValue) *transport.Error {
	return t.Reported(op, kind, e.Type, e.Code, e.Message, e.Param)
}
