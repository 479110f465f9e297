package gemini

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

// quotaDelay is how long after setupComplete an exhausted quota shows, as
// kazunori279/interpretab measured it (its README, read 2026-11-20).
const quotaDelay = 800 * time.Millisecond

// connection is one WebSocket, from the handshake to its end. Owned by the
// goroutine of its request.
type connection struct {
	// Fixed after serveLive.
	h    *Handler
	at   route
	key  string
	fate wire.Key
	wc   *wire.Conn
	seed uint64
	ids  *wire.IDs
	log  *slog.Logger

	sess *session // nil before the setup
}

// serveLive upgrades the request and plays the model until the connection ends.
func (h *Handler) serveLive(w http.ResponseWriter, r *http.Request, at route) {
	key := requestKey(r)
	fate := wire.ClassifyKey(key)
	if fate == wire.KeyMissing {
		// The HTTP layer refuses it before there is a WebSocket.
		h.stats.Refused.Add(1)
		refuseKey(w, fate)
		return
	}
	begin := h.opts.Begin(fault.APILive)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	leave, ok := h.opts.Group.Enter(end)
	if !ok {
		writeError(w, http.StatusServiceUnavailable, "UNAVAILABLE", reasonUnavailable)
		return
	}
	defer leave()
	rest, ok := h.faultsAtConnect(ctx, w, r, begin.Faults)
	if !ok {
		return
	}
	wc, err := wire.Accept(w, r, wire.ConnOptions{
		Binary: true, Unknown: unknownEvent, Faults: begin.Faults, Stats: h.stats,
	})
	if err != nil {
		h.log.Debug("handshake failed", "wire", "gemini", "error", err)
		return
	}
	defer wc.Release()
	defer h.opts.Group.Attach(r.RemoteAddr, wc)()
	stop := context.AfterFunc(ctx, wc.End)
	defer stop()
	wc.Do(rest)
	h.stats.Connections.Add(1)
	h.stats.Open.Add(1)
	defer h.stats.Open.Add(-1)
	c := &connection{
		h: h, at: at, key: key, fate: fate, wc: wc, seed: begin.Seed,
		ids: wire.NewIDs(begin.Seed), log: h.log.With("wire", "gemini", "conn", begin.N),
	}
	c.log.Info("connection opened", "version", at.version, "vertex", at.vertex)
	c.run()
	if c.sess != nil {
		h.resumable.release(c.sess.conv)
		c.log.Info("connection closed", "model", c.sess.cfg.model, "turns", c.sess.turns)
		return
	}
	c.log.Info("connection closed before setup")
}

// faultsAtConnect carries out the faults of the handshake. It returns those
// that need the connection, and false if the request has been answered.
func (h *Handler) faultsAtConnect(ctx context.Context, w http.ResponseWriter, r *http.Request, in *fault.Injector) ([]fault.Action, bool) {
	var rest []fault.Action
	for _, a := range in.At(fault.Point{At: fault.AtConnect}) {
		switch a.Kind {
		case fault.Delay, fault.Silence:
			h.stats.Committed(a.Kind)
			if !pause(ctx, r.Context(), a) {
				writeError(w, http.StatusServiceUnavailable, "UNAVAILABLE", reasonUnavailable)
				return nil, false
			}
		case fault.Quota:
			h.stats.Committed(a.Kind)
			h.stats.Refused.Add(1)
			refuseKey(w, wire.KeyQuota)
			return nil, false
		case fault.Drop:
			h.stats.Committed(a.Kind)
			// The server closes the TCP connection without an answer.
			panic(http.ErrAbortHandler)
		case fault.HTTPError:
			h.stats.Committed(a.Kind)
			wire.RetryAfter(w, a.For)
			writeError(w, a.Code, wire.StatusName(a.Code), cmp.Or(a.Reason, http.StatusText(a.Code)))
			return nil, false
		case fault.Close, fault.SlowRead, fault.UnknownEvent, fault.Malformed:
			rest = append(rest, a)
		case fault.GoAway, fault.Expire, fault.DuplicateCall, fault.LateCall, fault.CancelCall, fault.MissingID,
			fault.Deaf, fault.RefuseResume, fault.Amnesia, fault.LateHandle, fault.NoHandle, fault.BusyHandle:
			// These need a session, and there is none yet.
		}
	}
	return rest, true
}

// pause waits for the end of a delay or a silence; false if the server or the client
// ends meanwhile, or if the silence has no end.
func pause(server, client context.Context, a fault.Action) bool {
	var due <-chan time.Time
	if a.Kind == fault.Delay || a.For > 0 {
		t := time.NewTimer(a.For)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
		return true
	case <-server.Done():
	case <-client.Done():
	}
	return false
}

// run is the connection's loop. It returns when the connection is over.
func (c *connection) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !c.wc.Closed() {
		c.arm(timer)
		select {
		case f := <-c.wc.Frames():
			if f.Err != nil {
				return
			}
			c.frame(f)
		case <-timer.C:
			if c.sess != nil {
				c.sess.tick(time.Now())
			}
		case <-c.wc.Tick():
			rest := c.wc.Flush()
			if c.sess != nil {
				c.sess.commitAll(time.Now(), rest)
			}
		case <-c.wc.Done():
			c.wc.Close(int(websocket.StatusGoingAway), "")
		}
	}
}

func (c *connection) arm(timer *time.Timer) {
	wait := time.Hour
	if c.sess != nil {
		if at, ok := c.sess.due(); ok {
			wait = max(time.Until(at), 0)
		}
	}
	timer.Reset(wait)
}

// frame handles one frame from the client.
func (c *connection) frame(f wire.Frame) {
	m, err := parseMessage(f.Data)
	if err == nil {
		if c.sess == nil {
			err = c.setup(m)
		} else {
			err = c.sess.handle(time.Now(), m)
		}
	}
	if err != nil {
		c.h.stats.Errors.Add(1)
		c.log.Info("connection refused", "code", int(err.Code), "reason", err.Reason)
		c.wc.Close(int(err.Code), err.Reason)
	}
}

// setup handles the first message. Any error, a wrong key included, is reported
// only now: the handshake succeeds with any key.
func (c *connection) setup(m clientMessage) *closeError {
	if m.setup == nil {
		return invalid("setup must be the first message and only the first")
	}
	now := time.Now()
	switch c.fate {
	case wire.KeyInvalid:
		return c.refused(invalid(reasonBadKey))
	case wire.KeyExpired:
		return c.refused(invalid(reasonExpiredKey))
	}
	ends, err := c.authorize(m.setup, now)
	if err != nil {
		return c.refused(err)
	}
	cfg, err := configure(m.setup, c.at)
	if err != nil {
		return c.refused(err)
	}
	conv, err := c.conversation(cfg, now)
	if err != nil {
		return err
	}
	c.sess = c.h.newSession(cfg, conv, c.wc, c.log)
	id := ""
	if c.at.vertex {
		id = c.ids.UUID()
	}
	c.sess.start(now, id)
	if c.fate == wire.KeyQuota {
		c.sess.after(now, quotaDelay, func(time.Time) { c.sess.close(internal(reasonQuota)) })
	}
	if !ends.IsZero() {
		c.sess.after(now, ends.Sub(now), func(time.Time) { c.sess.close(invalid(reasonExpiredToken)) })
	}
	return nil
}

func (c *connection) refused(err *closeError) *closeError {
	c.h.stats.Refused.Add(1)
	return err
}

// authorize spends an ephemeral token, which only the constrained method accepts
// and which that method requires. The time is the token's end, zero for a key.
func (c *connection) authorize(m *setupMessage, now time.Time) (time.Time, *closeError) {
	isToken := strings.HasPrefix(c.key, tokenPrefix)
	if isToken != c.at.constrained {
		if isToken {
			return time.Time{}, invalid(reasonBadKey)
		}
		return time.Time{}, invalid(reasonBadToken)
	}
	if !isToken {
		return time.Time{}, nil
	}
	resumed := m.SessionResumption != nil && m.SessionResumption.Handle != ""
	raw := m.raw
	ends, err := c.h.tokens.use(c.key, raw, resumed, now)
	if err != nil {
		return ends, err
	}
	*m = setupMessage{}
	if err := retype(raw, m); err != nil {
		return ends, err
	}
	m.raw = raw
	return ends, nil
}

// conversation finds the conversation of a handle, or begins a new one.
func (c *connection) conversation(cfg config, now time.Time) (*conversation, *closeError) {
	if cfg.handle != "" {
		return c.h.resumable.resume(cfg.handle, cfg.model, now)
	}
	conv := c.h.newConversation(cfg.model, c.seed, c.ids, now)
	c.h.resumable.adopt(conv)
	return conv, nil
}

// newSession sets up the model's side of a connection.
func (h *Handler) newSession(cfg config, conv *conversation, out outlet, log *slog.Logger) *session {
	life := handleLife
	if cfg.habits.vertex {
		life = handleLifeVertex
	}
	return &session{
		limits: h.limits, out: out, speak: h.lines.speak, stats: h.stats, log: log,
		cfg: cfg, resumed: cfg.handle != "", conv: conv, ear: newEar(cfg.realtime, cfg.habits.vertex),
		grant: func() string {
			handle := conv.ids.UUID()
			h.resumable.put(handle, conv, time.Now().Add(life))
			return handle
		},
	}
}

var _ outlet = (*wire.Conn)(nil)
