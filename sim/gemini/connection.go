package gemini

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// quotaDelay is how long after setupComplete an exhausted quota shows, as
// kazunori279/interpretab measured it (its README, read 2026-11-20).
const quotaDelay = 800 * time.Millisecond

// connection is one WebSocket, from the handshake to its end. Owned by the goroutine of its request.
type connection struct {
	// Fixed after serveLive.
	h     *Handler
	at    route
	key   string
	class wire.Key
	wc    *wire.Conn
	seed  uint64
	ids   *wire.IDs
	log   *slog.Logger

	sess *session // nil before the setup
}

func (h *Handler) serveLive(w http.ResponseWriter, r *http.Request, at route) {
	key := wire.GoogleKeyOf(r)
	class := wire.ClassifyKey(key)
	if class == wire.KeyMissing {
		// The HTTP layer refuses it before there is a WebSocket.
		h.opts.Stats.Refused.Add(1)
		wire.Refuse(w, wire.GoogleError, wire.GoogleKey(key))
		return
	}
	answer := func(a scenario.Fault) bool {
		switch a.Kind {
		case scenario.Quota:
			h.opts.Stats.Refused.Add(1)
			wire.Refuse(w, wire.GoogleError, &wire.Error{Status: http.StatusTooManyRequests, Message: reasonQuota})
		case scenario.HTTPError:
			wire.Refuse(w, wire.GoogleError, &wire.Error{Status: a.Code, Message: cmp.Or(a.Reason, http.StatusText(a.Code))})
		default:
			return false
		}
		return true
	}
	o := wire.ConnOptions{Binary: true, Unknown: unknownEvent, Answer: answer}
	h.opts.Serve(w, r, scenario.APILive, o, func(wc *wire.Conn, begin wire.Begin, others []scenario.Fault) {
		// The rest need a session, which has not begun yet.
		wc.Do(slices.DeleteFunc(others, func(a scenario.Fault) bool { return !slices.Contains(withoutSession, a.Kind) }))
		c := &connection{
			h: h, at: at, key: key, class: class, wc: wc, seed: begin.Seed,
			ids: wire.NewIDs(begin.Seed), log: h.opts.Logger.With("wire", "gemini", "conn", begin.N),
		}
		c.log.Info("connection opened", "version", at.version, "vertex", at.vertex)
		wc.Run(c, "")
		if c.sess != nil {
			h.resumable.release(c.sess.conv)
			c.log.Info("connection closed", "model", c.sess.cfg.Model, "turns", c.sess.turns)
			return
		}
		c.log.Info("connection closed before setup")
	})
}

// withoutSession are the faults of the handshake that an open connection can have before its setup.
var withoutSession = []scenario.FaultKind{scenario.Close, scenario.SlowRead, scenario.UnknownEvent, scenario.Malformed}

func (c *connection) Due() (time.Time, bool) {
	if c.sess == nil {
		return time.Time{}, false
	}
	return c.sess.due()
}

func (c *connection) Proceed(now time.Time) {
	if c.sess != nil {
		c.sess.tick(now)
	}
}

func (c *connection) Commit(as []scenario.Fault) {
	if c.sess != nil {
		c.sess.commitAll(time.Now(), as)
	}
}

func (c *connection) Handle(data []byte) {
	m, err := parseMessage(data)
	if err == nil {
		if c.sess == nil {
			err = c.setup(m)
		} else {
			err = c.sess.handle(time.Now(), m)
		}
	}
	if err != nil {
		c.h.opts.Stats.Errors.Add(1)
		c.log.Info("connection refused", "code", int(err.Code), "reason", err.Reason)
		c.wc.Close(int(err.Code), err.Reason)
	}
}

// setup handles the first message. Any error, a wrong key included, is reported
// only now: the handshake succeeds with any key.
func (c *connection) setup(m clientMessage) *closeError {
	if m.Setup == nil {
		return invalid("setup must be the first message and only the first")
	}
	now := time.Now()
	switch c.class {
	case wire.KeyInvalid:
		return c.refused(invalid(reasonBadKey))
	case wire.KeyExpired:
		return c.refused(invalid(reasonExpiredKey))
	}
	ends, err := c.authorize(m.Setup, now)
	if err != nil {
		return c.refused(err)
	}
	cfg, err := configure(m.Setup, c.at)
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
	if c.class == wire.KeyQuota {
		c.sess.after(now, quotaDelay, func(time.Time) { c.sess.close(internal(reasonQuota)) })
	}
	if !ends.IsZero() {
		c.sess.after(now, ends.Sub(now), func(time.Time) { c.sess.close(invalid(reasonExpiredToken)) })
	}
	return nil
}

func (c *connection) refused(err *closeError) *closeError {
	c.h.opts.Stats.Refused.Add(1)
	return err
}

// authorize spends an ephemeral token, which only the constrained method accepts and which that method requires.
// The time is the token's end, zero for a key.
func (c *connection) authorize(m *setupMessage, now time.Time) (time.Time, *closeError) {
	isToken := strings.HasPrefix(c.key, tokenPrefix)
	switch {
	case isToken && !c.at.constrained:
		return time.Time{}, invalid(reasonBadKey)
	case !isToken && c.at.constrained:
		return time.Time{}, invalid(reasonBadToken)
	case !isToken:
		return time.Time{}, nil
	}
	resumed := m.handle() != ""
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

func (c *connection) conversation(cfg config, now time.Time) (*conversation, *closeError) {
	if cfg.handle() != "" {
		return c.h.resumable.resume(cfg.handle(), cfg.Model, now)
	}
	conv := &conversation{
		origin: &origin{model: cfg.Model, began: now, ids: c.ids}, dialogue: c.h.opts.Scenario.NewDialogue(c.seed),
	}
	c.h.resumable.adopt(conv)
	return conv, nil
}

func (h *Handler) newSession(cfg config, conv *conversation, out outlet, log *slog.Logger) *session {
	life := handleLife
	if cfg.habits.vertex {
		life = handleLifeVertex
	}
	return &session{
		opts: &h.opts, out: out, speak: h.speak, log: log,
		cfg: cfg, resumed: cfg.handle() != "", conv: conv, ear: newEar(cfg.RealtimeInputConfig, cfg.habits.vertex),
		grant: func() string {
			handle := conv.ids.UUID()
			h.resumable.put(handle, conv, time.Now().Add(life))
			return handle
		},
	}
}

var _ outlet = (*wire.Conn)(nil)
