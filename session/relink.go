package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/transport"
)

// redialer opens new connections for a session that has begun. It is immutable.
type redialer struct {
	m        *Manager
	provider string // the session's
	modelRequest
}

func (r *redialer) setup(provider string) transport.Setup {
	return r.m.options().setup(&r.modelRequest, provider)
}

var errStalled = &transport.Error{Op: "send", Kind: transport.KindRetry, Code: "stalled",
	Err: errors.New("the model accepted no data for too long")}

// modelError returns the model's error in err, or one without details.
func modelError(err error) *transport.Error {
	if te, ok := errors.AsType[*transport.Error](err); ok {
		return te
	}
	return &transport.Error{Kind: transport.KindRetry}
}

func levelOf(err error) slog.Level { return modelError(err).Kind.Failure().Level }

// lost ignores a replaced link. After a failed send, hear reports the loss behind the remaining events.
func (l *link) lost(op string, err error) {
	s := l.s
	s.mu.Lock()
	if s.isOver() || !l.current() {
		s.mu.Unlock()
		return
	}
	if l.failed == nil {
		l.failed = err
		e := modelError(err)
		l.observe(Broken{Kind: e.Kind, Code: e.Code})
		s.log().Log(context.Background(), levelOf(err), "model lost", "op", op, "kind", transport.KindOf(err).String(), "error", err)
	}
	begun := s.model.redial.Load() != nil
	if !begun {
		s.end(lostBy(transport.KindOf(l.failed)))
	}
	s.mu.Unlock()
	switch {
	case !begun:
	case op == "recv":
		l.audioDone(l.item)
		e := modelError(l.failed)
		s.dispatchFrom(l, orchestrator.LinkLost{Kind: e.Kind, After: e.RetryAfter})
	default:
		s.closeModel(l.conn)
	}
}

// When a connection is replaced before its end: from spareQuiet before it at a quiet moment, at the latest spareTold
// before an announced end, or spareKnown before a documented one, whose start only the provider knows.
const (
	spareQuiet = 10 * time.Minute
	spareTold  = 5 * time.Second
	spareKnown = time.Minute
)

// For short lifetimes the reserves shrink to a sixth and a twentieth.
func (l *link) expires() {
	s := l.s
	now := time.Now()
	at, spare := l.info().ExpiresAt, spareTold
	if life := l.info().Capabilities.ConnectionLife; !at.After(now) && life > 0 {
		at, spare = now.Add(life), spareKnown
	}
	if life := at.Sub(now); life > 0 {
		s.dispatchFrom(l, orchestrator.LinkExpiring{From: at.Add(-min(life/6, spareQuiet)), By: at.Add(-min(life/20, spare))})
	}
}

// switchLink replaces the session's link. The caller must hold mu.
func (s *session) switchLink(a orchestrator.SwitchLink) {
	old := s.model.link()
	old.replaced = true
	provider := s.model.agentsProvider(s.opts, a.Reason)
	s.up.hold()
	w := &relink{s: s, redial: s.model.redial.Load(), from: old, began: time.Now(), reason: a.Reason, handle: a.Handle,
		history: s.history(), stop: func() {},
		provider: provider, next: &orchestrator.Redial{After: a.After, Other: a.Other}}
	s.model.relink = w
	s.log().Info("the model's connection is replaced", "reason", string(a.Reason), "link", old.gen, "resumes", a.Handle != "",
		"calls", a.Calls, "deferred", a.Deferred, "wait_ms", a.After.Milliseconds())
	s.readers.Go(w.run)
}

// history returns the conversation for a new connection. The caller must hold mu.
func (s *session) history() []transport.Past {
	if s.model.redial.Load() == nil {
		return nil
	}
	past := s.transcript.Past(s.model.redial.Load().mark, time.Since(s.startedAt))
	if s.before != "" {
		note := transport.PastNote{Text: s.model.redial.Load().mark.Notice(prompts.WrittenBefore(s.before))}
		past = append([]transport.Past{note}, past...)
	}
	return past
}

// relink replaces one link by the next, on its own goroutine. finish waits for it.
type relink struct {
	s       *session
	redial  *redialer // as of this attempt; a change of agent replaces it
	from    *link
	began   time.Time
	reason  orchestrator.LinkReason
	handle  string // to resume with; empty after its refusal
	history []transport.Past
	refused int // refusals of the history
	// provider is the one to connect to.
	provider string

	// Guarded by the session's mu.
	stop context.CancelFunc   // ends the current attempt
	next *orchestrator.Redial // the next attempt that the step decided on; nil without one

	carried transport.Carried // the rest of the old connection; nil without any

	returned bool // the session was offered to other nodes, because no model could be reached
}

// run closes the old connection first, because Gemini refuses a second one with the same handle.
func (w *relink) run() {
	s := w.s
	if w.carried = transport.CarryOver(w.from.conn); w.carried != nil {
		defer w.carried.Drop()
	}
	s.closeModel(w.from.conn)
	w.from.over.Wait() // all its events were handled
	w.from.reportSkipped()
	for {
		if g := locked(s, s.model.currentHandover); g != nil && g.run(s) {
			return
		}
		err := w.attempt()
		switch {
		case errors.Is(err, errHandover) || errors.Is(err, errOtherAgent):
		case err == nil || s.isOver():
			return
		case !w.failed(err):
			return
		}
	}
}

func (w *relink) failed(err error) (again bool) {
	s := w.s
	e := modelError(err)
	kind, after := e.Kind, e.RetryAfter
	s.log().Log(context.Background(), levelOf(err), "reconnecting to the model failed", "provider", w.provider,
		"kind", kind.String(), "error", err)
	if w.returnSession(orchestrator.Loss{Kind: kind, After: after}) {
		return true
	}
	s.dispatch(orchestrator.LinkFailed{Kind: kind, After: after})
	s.mu.Lock()
	again = w.next != nil || s.model.handover != nil
	if !again {
		s.model.relink = nil
	}
	s.mu.Unlock()
	if !again {
		s.log().Warn("the connection to the model could not be replaced", "provider", w.provider, "kind", kind.String(), "error", err)
		w.from.observe(Relinked{Why: w.reason, Gap: time.Since(w.began)})
	}
	return again
}

var errHandover = errors.New("the session is being handed over")

var errOtherAgent = errors.New("the agent has changed")

func (w *relink) attempt() error {
	s := w.s
	ctx, cancel := context.WithCancel(s.context())
	defer cancel()
	s.mu.Lock()
	w.stop = cancel
	next := w.next
	w.next = nil
	if now := s.model.redial.Load(); now != w.redial {
		w.redial, w.handle, w.history = now, "", s.history()
		w.provider = s.model.agentsProvider(s.opts, orchestrator.LinkAgent)
	}
	leaving := s.model.handover != nil
	s.mu.Unlock()
	if leaving {
		return errHandover
	}
	err := w.wait(ctx, next)
	if err == nil {
		var conn transport.Conn
		var how orchestrator.LinkHow
		if conn, how, err = w.connect(ctx); err == nil {
			return w.use(conn, how)
		}
	}
	if locked(s, s.model.currentHandover) != nil {
		return errHandover
	}
	return err
}

func (w *relink) wait(ctx context.Context, next *orchestrator.Redial) error {
	if next == nil {
		return nil
	}
	if next.Other {
		if other := w.s.model.otherProvider(w.s.opts, w.provider); other != "" {
			w.s.log().Warn("another provider takes over", "from", w.provider, "to", other)
			w.provider, w.handle = other, ""
		}
	}
	if next.After <= 0 {
		return nil
	}
	pause := time.NewTimer(next.After)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *modelSide) agentsProvider(o *Options, why orchestrator.LinkReason) string {
	own, last := m.redial.Load().provider, m.link().info().Provider
	if _, ok := o.Transports[last]; !ok || why == orchestrator.LinkAgent {
		return own
	}
	return last
}

func (m *modelSide) otherProvider(o *Options, from string) string {
	switch own := m.redial.Load().provider; {
	case o.Fallback == "":
		return ""
	case from != o.Fallback:
		return o.Fallback
	case own != from:
		return own
	case o.Provider != from:
		return o.Provider
	}
	return ""
}

// connect opens a connection. If the provider refuses the handle or the history, it tries without.
func (w *relink) connect(ctx context.Context) (transport.Conn, orchestrator.LinkHow, error) {
	for {
		conn, how, err := w.try(ctx, w.provider)
		if err == nil {
			w.redial.m.breakers[w.provider].report(true, time.Now())
			return conn, how, nil
		}
		if ctx.Err() == nil && w.reduce(err) {
			w.s.log().Info("the model refuses the handle or the history; trying without", "provider", w.provider,
				"how", string(how), "kind", transport.KindOf(err).String(), "error", err)
			continue
		}
		if ctx.Err() == nil {
			w.redial.m.breakers[w.provider].report(!transport.KindOf(err).Retryable(), time.Now())
		}
		return nil, how, err
	}
}

func (w *relink) try(ctx context.Context, provider string) (transport.Conn, orchestrator.LinkHow, error) {
	r := w.redial
	setup, how := r.setup(provider), orchestrator.LinkFresh
	switch caps := w.s.opts.Transports[provider].Capabilities(setup.Model); {
	case w.handle != "" && caps.Resume:
		setup.ResumeHandle, how = w.handle, orchestrator.LinkResumed
	case len(w.history) > 0 && caps.History != transport.HistoryNone:
		setup.History, setup.Reanchor = w.history, r.mark.Notice(prompts.GoOn)
		how = orchestrator.LinkReplayed
	}
	setup.Carried = w.carried
	limit := w.s.opts.attemptTimeOf(provider)
	if how == orchestrator.LinkReplayed {
		limit *= 2 // the provider reads a long history
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := r.m.dial(ctx, provider, setup, how)
	return conn, how, err
}

func (w *relink) reduce(err error) bool {
	te, ok := errors.AsType[*transport.Error](err)
	switch {
	case !ok:
		return false
	case w.handle != "" && te.Op != "dial":
		w.handle = ""
		return true
	case te.Op == transport.OpHistory && w.history != nil:
		if w.refused++; te.Kind == transport.KindRetry && w.refused < 2 {
			return false
		}
		w.history = nil
		return true
	}
	return false
}

func (w *relink) use(conn transport.Conn, how orchestrator.LinkHow) error {
	s := w.s
	l := new(link)
	err := l.begin(s, w.from.gen+1, conn)
	if err == nil {
		err = w.install(l, how)
	}
	if err != nil {
		s.closeModel(conn)
		return err
	}
	s.readers.Add(1)
	l.start()
	l.expires()
	l.observe(Relinked{Why: w.reason, How: how, Gap: time.Since(w.began)})
	s.log().Info("the model's connection was replaced", "link", l.gen, "how", string(how), "provider", l.info().Provider,
		"model", l.info().Model)
	return nil
}

// install sends what waits: first the orchestrator's repetitions, then the user's later speech.
func (w *relink) install(l *link, how orchestrator.LinkHow) error {
	s := w.s
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mic.release(s)
	s.up.waitStopped()
	if err := l.adapt(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver():
		return s.cause()
	case s.model.handover != nil:
		return errHandover
	case s.model.redial.Load() != w.redial:
		return errOtherAgent
	}
	s.model.relink = nil
	s.model.linked.Store(l)
	s.up.beginFront()
	kept, waits := s.model.lookback.ms(), audio.MS(l.info().InputRate, s.up.queued())
	s.step(orchestrator.LinkBack{Caps: l.info().Capabilities, How: how, Kept: kept >= leastKept}, time.Now())
	l.offsetMS = s.mic.clock.ms() - waits - (kept - s.model.lookback.ms())
	s.up.resume()
	s.shown.state(s)
	s.setClock()
	return nil
}

// leastKept is the shortest speech, in ms, worth repeating.
const leastKept = 200

// The caller must hold mu, and no sender may run.
func (s *session) sayAgain(a orchestrator.SayAgain) {
	s.log().Info("the user's unanswered speech is repeated to the model", "audio_ms", s.model.lookback.ms())
	var entries []upEntry
	for _, f := range s.model.lookback.take() {
		entries = append(entries, upEntry{frame: f, again: true})
	}
	if a.Over && manual(s.start) {
		entries = append([]upEntry{{cmd: transport.ActivityStart{}}}, entries...)
		entries = append(entries, upEntry{cmd: transport.ActivityEnd{}})
	}
	s.up.pushFront(entries)
}

// The caller must hold inbound.
func (l *link) adapt() error {
	s := l.s
	was, rate := s.model.link().info().InputRate, l.info().InputRate
	s.mic.setModel(l.info(), s.opts.JoinSilence)
	if was == rate {
		s.ear.relinked(l.info().Capabilities.SpeechEvents, false)
		return nil
	}
	in, err := resampler(s.start.InputRate, rate)
	if err != nil {
		return err
	}
	waiting, err := resampler(was, rate)
	if err != nil {
		return err
	}
	s.mic.resampler = in
	s.model.lookback.resample(waiting, rate)
	s.up.resample(waiting, audio.Bytes(rate, upBacklog), audio.Bytes(rate, longestQueued))
	s.ear.relinked(l.info().Capabilities.SpeechEvents, true)
	return nil
}
