package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/livewire"
	"voicegw/internal/ws"
	"voicegw/transport"
	"voicegw/transport/openai"
)

const (
	maxSetupEvents = 100 // before session.started
	// leaveTime is how long the provider may take to confirm session.close, which has the final usage. No caller waits for it.
	leaveTime = 3 * time.Second
	// silentTime ends a connection that is silent: the provider sends ten frames a second.
	silentTime = 30 * time.Second
)

// conn is one open conversation. [transport.Conn] defines which goroutine may call what.
type conn struct {
	// Fixed once connected.
	t           *Transport
	ws          *ws.Conn
	info        transport.Info
	delegations *delegations
	feed        feed

	unknowns        openai.Unknowns
	malformed, slow atomic.Int64
	heard           atomic.Int64 // when the last frame came, Unix ns; zero before Notify
	ready           atomic.Bool  // session.started was received

	// Owned by Recv.
	dialog  dialog
	pcm     []byte           // the audio of the current frame; nil while the model is silent
	phrases int              // of the dialog, as the delegations last saw
	known   []string         // the latest ids of delegations
	booked  int64            // the seconds that were reported
	doom    transport.Kind   // the kind of the last error, if it explains an end
	failed  *transport.Error // what Recv has returned

	mu      sync.Mutex // guards the following fields
	cause   *transport.Error
	inbox   []any       // events, and notes of the following types, that other goroutines have for Recv
	leaving *time.Timer // closes the socket; nil unless session.close was sent
}

type (
	resultTold     struct{} // a result went to the model
	sentencePlayed struct{} // an exact sentence counts as played
	userTyped      string
)

func newConn(t *Transport, setup transport.Setup) *conn {
	return &conn{t: t, dialog: newDialog(), info: transport.Info{
		Provider: t.opts.Name, Model: setup.Model, InputRate: sampleRate, OutputRate: sampleRate, Capabilities: t.Capabilities(setup.Model),
	}}
}

func (c *conn) dial(ctx context.Context) *transport.Error {
	socket, err := c.t.Dial(ctx, c.t.url, "", openai.ReadLimit) // a frame has 100 ms of audio
	if err == nil {
		c.ws, c.info.LocalAddr = socket, socket.LocalAddr()
	}
	return err
}

// setUp sends session.start and waits for session.started. ctx limits all of it.
func (c *conn) setUp(ctx context.Context, start []byte) *transport.Error {
	stop := context.AfterFunc(ctx, func() {
		c.end(c.t.Fault("setup", transport.KindOfContext(ctx.Err()), "no_session_started",
			fmt.Errorf("the provider did not send session.started in time: %w", ctx.Err())))
	})
	defer stop()
	writeErr := c.ws.Write(websocket.MessageText, start)
	for range maxSetupEvents {
		_, frame, err := c.ws.Read()
		if err != nil {
			return c.readError("setup", errors.Join(err, writeErr))
		}
		ev, err := livewire.ParseServerEvent(frame)
		switch {
		case err != nil:
			c.malformed.Add(1)
		case ev.Type == livewire.Started && ev.Session != nil:
			c.ready.Store(true)
			return c.adopt(ev.Session)
		case ev.Type == livewire.Closed:
			return c.closedBy(ev.Reason)
		case ev.Type == livewire.Failed && ev.Error != nil && ev.Error.Code != livewire.CodeMissingScope:
			// missing_scope comes before sessions that start. Any other error means that this one will not.
			kind := transport.KindOfCode(ev.Error.Code, ev.Error.Type)
			if kind == 0 {
				kind = transport.KindInvalid
			}
			return c.t.reported("setup", kind, ev.Error)
		case !livewire.Known(ev.Type):
			c.unknowns.Add(1)
		}
	}
	return c.t.Fault("setup", transport.KindTimeout, "no_session_started",
		errors.New("the provider did not start the session within the first events"))
}

func (c *conn) adopt(s *livewire.Session) *transport.Error {
	c.info.SessionID = s.ID
	if s.Model != "" {
		c.info.Model = s.Model
	}
	if s.ExpiresAt > 0 {
		c.info.ExpiresAt = time.Unix(s.ExpiresAt, 0).UTC()
	}
	if f := s.Audio.Format; f.Type != "" && (f.Type != "audio/pcm" || f.Rate != sampleRate) {
		return c.t.Fault("setup", transport.KindInvalid, "audio_format",
			errors.New("the server announces audio other than the PCM16 of 24 kHz that was asked for"))
	}
	return nil
}

func (c *conn) Info() transport.Info { return c.info }

func (c *conn) Stats() transport.Stats {
	return transport.Stats{UnknownEvents: c.unknowns.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load()}
}

func (c *conn) Ready() bool { return c.ws.Ready() }

// Close implements transport.Conn. The provider is asked to end the session, so that no more seconds are charged; its
// last messages are read later, by the socket's own events.
func (c *conn) Close() error {
	first := c.ends(c.t.Fault("close", transport.KindClosed, "", errors.New("closed by this side")))
	c.feed.stop()
	c.delegations.leave(c)
	if !first || !c.ws.Ready() || !c.ask() {
		c.shut()
	}
	c.ws.Nudge()
	return nil
}

// ask sends session.close, after which the socket stays open for leaveTime at most. It reports whether it did.
func (c *conn) ask() bool {
	if c.heard.Load() == 0 || c.write(livewire.ClientEvent{Type: livewire.Close}) != nil { // no one reads, or it is broken
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = time.AfterFunc(leaveTime, c.shut)
	return true
}

func (c *conn) shut() { _ = c.ws.CloseNow() } // it is closed afterwards even if this returns an error

// ends notes why the connection ends, and reports whether it had not ended before.
func (c *conn) ends(cause *transport.Error) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first = c.cause == nil
	c.cause = cmp.Or(c.cause, cause)
	return first
}

func (c *conn) end(cause *transport.Error) {
	c.ends(cause)
	c.shut()
}

func (c *conn) ended() *transport.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

func (c *conn) readError(op string, err error) *transport.Error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	kind, code, err := openai.EndOf(err, c.ready.Load())
	if c.doom != 0 && kind.Retryable() {
		kind = c.doom // the provider gave the reason before
	}
	return c.t.Fault(op, kind, code, err)
}

// closedBy returns the error for the reason of session.closed.
func (c *conn) closedBy(reason string) *transport.Error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	kind := transport.KindRetry
	switch {
	case reason == livewire.ReasonExpired:
		kind = transport.KindExpired
	case reason == livewire.ReasonContent:
		kind = transport.KindFiltered
	case c.doom != 0:
		kind = c.doom
	}
	return c.t.Fault("recv", kind, reason, fmt.Errorf("the provider has closed the session: %s", c.t.Text(reason)))
}

// Notify implements transport.Conn. After Close has been reported, f is not called any more.
func (c *conn) Notify(f func()) {
	c.heard.Store(time.Now().UnixNano())
	c.ws.Notify(func() {
		if c.failed == nil {
			f()
		}
		if c.failed != nil {
			c.hearOut()
		}
	})
}

// hearOut reads the provider's last messages after Close.
func (c *conn) hearOut() {
	for over := false; !over; {
		_, frame, ok, err := c.ws.TryRead()
		if err == nil && !ok {
			return
		}
		ev, _ := livewire.ParseServerEvent(frame) // what cannot be read is skipped
		closed := ev.Type == livewire.Closed
		over = closed || err != nil
		if late := int64(math.Ceil(ev.Usage.Seconds)) - c.booked; closed && late > 0 {
			c.t.opts.Logger.Info("usage_after_close", "provider", c.info.Provider, "seconds", late)
		}
	}
	c.mu.Lock()
	if c.leaving != nil {
		c.leaving.Stop()
	}
	c.mu.Unlock()
	c.shut()
}

// Recv implements transport.Conn.
func (c *conn) Recv() (transport.Event, error) {
	for {
		if ev := c.dialog.Next(); ev != nil {
			return ev, nil
		}
		if c.failed != nil {
			return nil, c.failed
		}
		if ev := c.deliver(); ev != nil {
			return ev, nil
		}
		if cause := c.ended(); cause != nil {
			c.over(cause, c.feed.seconds())
			continue
		}
		_, frame, ok, err := c.ws.TryRead()
		switch {
		case err != nil:
			c.over(c.readError("recv", err), c.feed.seconds())
		case !ok:
			return nil, nil
		default:
			c.heard.Store(time.Now().UnixNano())
			c.take(frame)
		}
	}
}

// deliver takes what other goroutines have left, and returns its first event.
func (c *conn) deliver() transport.Event {
	c.mu.Lock()
	in := c.inbox
	c.inbox = nil
	c.mu.Unlock()
	for _, one := range in {
		switch one := one.(type) {
		case resultTold:
			c.dialog.told()
		case sentencePlayed:
			c.played()
		case userTyped:
			c.dialog.typed(string(one))
		case transport.Event:
			c.dialog.Add(one)
		}
	}
	return c.dialog.Next()
}

// post leaves events and notes for Recv. It may be called at any time.
func (c *conn) post(all ...any) {
	c.mu.Lock()
	c.inbox = append(c.inbox, all...)
	c.mu.Unlock()
	c.ws.Nudge()
}

// unplayed ends an exact sentence whose end the provider has not reported. It may be called at any time.
func (c *conn) unplayed() { c.post(sentencePlayed{}) }

// played ends an exact sentence.
func (c *conn) played() {
	c.dialog.played()
	c.delegations.played()
}

// toldNow reports whether Recv has not seen the newest result.
func (c *conn) toldNow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.inbox, any(resultTold{}))
}

// over ends the reading: the last seconds are reported before Recv returns cause. After Close, the socket stays open for
// the provider's last messages.
func (c *conn) over(cause *transport.Error, seconds int64) {
	if cause.Kind != transport.KindClosed {
		c.end(cause)
	}
	c.feed.stop()
	c.book(seconds)
	c.failed = cause
}

// book reports the seconds since the last report.
func (c *conn) book(seconds int64) {
	if more := seconds - c.booked; more > 0 {
		c.booked = seconds
		c.dialog.Add(transport.Usage{Tokens: transport.Tokens{Seconds: more}})
	}
}
