package session

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/transport"
)

// linkBudget bounds the way to a new connection; with it a session without one ends.
const linkBudget = 30 * time.Second

// redialer opens new connections for a session that has begun. It is immutable.
type redialer struct {
	m        *Manager
	provider string // the one of the session
	wish
}

// setup returns what a new conversation with that provider gets.
func (r *redialer) setup(provider string) transport.Setup {
	return r.m.setup(&r.wish, provider)
}

// errStalled is the loss of a connection that takes no data.
var errStalled = &transport.Error{Op: "send", Kind: transport.KindRetry, Code: "stalled", Err: errors.New("the model has taken no data for too long")}

// breakOf returns what is told of a connection that ended with err.
func breakOf(err error) Broken {
	b := Broken{Kind: transport.KindRetry}
	if te, ok := errors.AsType[*transport.Error](err); ok {
		b.Kind, b.Code = te.Kind, te.Code
	}
	return b
}

// relinks reports whether a connection of l that ended with err may be replaced.
func (l *link) relinks(err error) bool {
	s := l.s
	if s.redial.Load() == nil || !s.opts.Policy.Relink || !orchestrator.Replaceable(l.info().Capabilities) {
		return false
	}
	switch kind := transport.KindOf(err); kind {
	case transport.KindAuth, transport.KindQuota:
		return s.opts.Fallback != "" && s.opts.Fallback != l.info().Provider
	default:
		return kind.Retryable()
	}
}

// lost takes the end of the model's connection: another one is asked for, or the session ends. An
// older link, or one that was given up, changes nothing. A failed send ends the connection; hear
// then reports it, after everything that has still come.
func (l *link) lost(op string, err error) {
	s := l.s
	s.mu.Lock()
	if s.isOver() || !l.current() {
		s.mu.Unlock()
		return
	}
	if l.failed == nil {
		l.failed = err
		l.told(breakOf(err))
		s.log().Warn("model lost", "op", op, "kind", transport.KindOf(err).String(), "error", err)
	}
	again := l.relinks(l.failed)
	if !again {
		s.end(lost(l.failed))
	}
	s.mu.Unlock()
	switch {
	case !again:
	case op == "recv":
		l.audioDone(l.item)
		s.take(l, orchestrator.LinkLost{})
	default:
		if err := l.conn.Close(); err != nil {
			s.log().Debug("closing the model's connection", "error", err)
		}
	}
}

// How long before its end a connection is replaced: from spareQuiet on at a quiet moment, and at the
// latest at spareTold before the time that the provider has told, or at spareKnown before the longest
// life that the model's row gives, which counts from a moment that only the provider knows.
const (
	spareQuiet = 10 * time.Minute
	spareTold  = 5 * time.Second
	spareKnown = time.Minute
)

// expires tells the orchestrator when the connection must have been replaced. Of a short life, each
// spare time is a part: a sixth and a twentieth.
func (s *session) expires(l *link) {
	now := time.Now()
	at, spare := l.info().ExpiresAt, spareTold
	if life := l.info().Capabilities.ConnectionLife; !at.After(now) && life > 0 {
		at, spare = now.Add(life), spareKnown
	}
	if life := at.Sub(now); life > 0 {
		s.take(l, orchestrator.LinkExpiring{From: at.Add(-min(life/6, spareQuiet)), By: at.Add(-min(life/20, spare))})
	}
}

// unlink gives up the session's link: for another one, or with the session. The caller must hold mu.
func (s *session) unlink(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.SwitchLink:
		s.switchLink(a)
	case orchestrator.Moving:
		s.moveOut(a)
	}
}

// switchLink gives up the session's link and starts the way to the next one. The caller must hold
// mu.
func (s *session) switchLink(a orchestrator.SwitchLink) {
	old := s.linked.Load()
	old.gone = true
	s.up.hold()
	w := &way{s: s, redial: s.redial.Load(), from: old, began: time.Now(), reason: a.Reason, handle: a.Handle, past: s.past(), stop: func() {}}
	s.way = w
	s.log().Info("the model's connection is replaced", "reason", string(a.Reason), "link", old.gen, "resumes", a.Handle != "",
		"calls", a.Calls, "deferred", a.Deferred)
	s.readers.Go(w.walk)
}

// past returns what a new connection is told of the conversation so far. The caller must hold mu.
func (s *session) past() []transport.Past {
	if s.redial.Load() == nil {
		return nil
	}
	past := s.story.Past(s.redial.Load().mark, time.Since(s.startedAt))
	if s.before != "" {
		note := transport.PastNote{Text: s.redial.Load().mark.Notice(prompts.WrittenBefore(s.before))}
		past = append([]transport.Past{note}, past...)
	}
	return past
}

// way is the way from one link to the next. It is walked by one goroutine, which finish waits for.
type way struct {
	s       *session
	redial  *redialer // as it was when the attempt began; another one after a change of agent
	from    *link
	began   time.Time
	reason  orchestrator.LinkReason
	handle  string // to resume with; empty once it was refused
	past    []transport.Past
	refused int                // how often the history was not taken
	stop    context.CancelFunc // ends the present attempt; guarded by the session's mu

	gaveBack bool // the session was to be taken again, because no model could be reached
}

// walk closes the old connection, opens another one and makes it the session's link. The old one
// is closed first: Gemini refuses a second connection with the same handle.
func (w *way) walk() {
	s := w.s
	if err := w.from.conn.Close(); err != nil {
		s.log().Debug("closing the model's connection", "error", err)
	}
	w.from.over.Wait() // everything that it had sent has been taken
	w.from.tellSkipped()
	for {
		if g := s.given(); g != nil && s.give(g) {
			return
		}
		err := w.reach()
		if errors.Is(err, errLeaving) || errors.Is(err, errOtherAgent) {
			continue
		}
		if err != nil && !s.isOver() {
			s.log().Warn("the model cannot be reached again", "kind", transport.KindOf(err).String(), "error", err)
			if s.givesBack(w) {
				continue
			}
			w.from.told(Relinked{Why: w.reason, Gap: time.Since(w.began)})
			s.dispatch(orchestrator.LinkGone{})
		}
		return
	}
}

// errLeaving: the session is to be given up, and needs no connection.
var errLeaving = errors.New("the session is given up")

// errOtherAgent: another agent goes on than the connection was opened for.
var errOtherAgent = errors.New("the agent has changed meanwhile")

// reach opens a connection and makes it the session's link.
func (w *way) reach() error {
	s := w.s
	ctx, cancel := context.WithTimeout(s.context(), linkBudget)
	defer cancel()
	s.mu.Lock()
	w.stop = cancel
	if now := s.redial.Load(); now != w.redial {
		w.redial, w.handle, w.past = now, "", s.past()
	}
	leaving := s.giving != nil
	s.mu.Unlock()
	if leaving {
		return errLeaving
	}
	conn, how, err := w.connect(ctx)
	if err == nil {
		return w.arrive(conn, how)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.giving != nil {
		return errLeaving
	}
	s.way = nil
	return err
}

// providers returns whom to ask for a connection: the provider of the last one, and whoever takes
// over from it.
func (w *way) providers() []string {
	o := w.s.opts
	first := w.from.info().Provider
	if w.reason == orchestrator.LinkAgent {
		first = w.redial.provider // the agent may have another one than the agent before
	}
	if _, ok := o.Transports[first]; !ok {
		first = w.redial.provider
	}
	if o.Fallback == "" || o.Fallback == first {
		return []string{first}
	}
	return []string{first, o.Fallback}
}

// patientTries is how often the provider of the last connection is tried before another one.
const patientTries = 2

// connect tries until a connection is open, the failure is final, or ctx ends. The provider of the
// last connection is tried first; if it is away, or refuses for good, the fallback takes over.
func (w *way) connect(ctx context.Context) (transport.Conn, orchestrator.LinkHow, error) {
	m, whom := w.redial.m, w.providers()
	tries := 0
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 250*time.Millisecond, 4*time.Second
	for {
		provider := whom[0]
		conn, how, err := w.try(ctx, provider)
		if err == nil {
			m.breakers[provider].report(true, time.Now())
			return conn, how, nil
		}
		w.s.log().Info("connecting to the model again failed", "provider", provider, "how", string(how), "kind", transport.KindOf(err).String(), "error", err)
		if w.less(err) {
			continue
		}
		kind := transport.KindOf(err)
		final := !kind.Retryable() && kind != transport.KindQuota // which some providers say of too many requests
		if tries++; len(whom) > 1 && (!kind.Retryable() || tries >= patientTries) && ctx.Err() == nil {
			m.breakers[provider].report(!kind.Retryable(), time.Now())
			w.s.log().Warn("another provider takes over", "from", provider, "to", whom[1])
			whom, w.handle, tries = whom[1:], "", 0
			continue
		}
		if ctx.Err() != nil || final {
			m.breakers[provider].report(final, time.Now())
			return nil, how, err
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil, how, err
		}
	}
}

// try makes one attempt.
func (w *way) try(ctx context.Context, provider string) (transport.Conn, orchestrator.LinkHow, error) {
	r := w.redial
	setup, how := r.setup(provider), orchestrator.LinkFresh
	switch caps := w.s.opts.Transports[provider].Capabilities(setup.Model); {
	case w.handle != "" && caps.Resume:
		setup.ResumeHandle, how = w.handle, orchestrator.LinkResumed
	case len(w.past) > 0 && caps.History != transport.HistoryNone:
		setup.History, setup.Reanchor = w.past, r.mark.Notice(prompts.GoOn)
		how = orchestrator.LinkReplayed
	}
	ctx, cancel := context.WithTimeout(ctx, w.s.opts.Limits.ConnectTimeout)
	defer cancel()
	conn, err := r.m.dial(ctx, provider, setup, how)
	return conn, how, err
}

// less asks the provider for less after a refusal, and reports whether there was less to ask for: it
// need not know a handle, and it may not take a history.
func (w *way) less(err error) bool {
	var te *transport.Error
	if !errors.As(err, &te) {
		return false
	}
	switch {
	case w.handle != "" && te.Op != "dial":
		w.handle = ""
		return true
	case te.Op == transport.OpHistory && w.past != nil:
		if w.refused++; te.Kind == transport.KindRetry && w.refused < 2 {
			return false
		}
		w.past = nil
		return true
	}
	return false
}

// arrive makes conn the session's link.
func (w *way) arrive(conn transport.Conn, how orchestrator.LinkHow) error {
	s := w.s
	l := new(link)
	err := l.begin(s, w.from.gen+1, conn)
	if err == nil {
		err = s.install(l, w, how)
	}
	if err != nil {
		if err := conn.Close(); err != nil {
			s.log().Debug("closing the model's connection", "error", err)
		}
		return err
	}
	s.readers.Add(1)
	l.start()
	s.expires(l)
	l.told(Relinked{Why: w.reason, How: how, Gap: time.Since(w.began)})
	s.log().Info("the model's connection was replaced", "link", l.gen, "how", string(how), "provider", l.info().Provider, "model", l.info().Model)
	return nil
}

// install puts l in the place of the link that was given up, and sends what has waited for it: first
// what the orchestrator asks for again, then what the user has said meanwhile.
func (s *session) install(l *link, w *way, how orchestrator.LinkHow) error {
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.up.stopped()
	if err := s.adapt(l); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver():
		return s.cause()
	case s.giving != nil:
		return errLeaving
	case s.redial.Load() != w.redial:
		return errOtherAgent
	}
	s.way = nil
	s.linked.Store(l)
	s.up.first()
	kept, waits := s.look.ms(), audio.MS(l.info().InputRate, s.up.queued())
	s.step(orchestrator.LinkBack{Caps: l.info().Capabilities, How: how, Kept: kept >= leastKept}, time.Now())
	l.offsetMS = s.clock.ms() - waits - (kept - s.look.ms())
	s.up.flow()
	s.showState()
	s.wind()
	return nil
}

// leastKept is how much of the user's speech, in ms, is worth saying again.
const leastKept = 200

// sayAgain puts what the user has said before everything that waits for the model. The caller must
// hold mu, and nobody may be sending.
func (s *session) sayAgain(a orchestrator.SayAgain) {
	s.log().Info("the model hears again what the user said", "audio_ms", s.look.ms())
	var entries []upEntry
	for _, f := range s.look.take() {
		entries = append(entries, upEntry{frame: f, again: true})
	}
	if a.Over && s.manual() {
		entries = append([]upEntry{{cmd: transport.ActivityStart{}}}, entries...)
		entries = append(entries, upEntry{cmd: transport.ActivityEnd{}})
	}
	s.up.pushFront(entries)
}

// adapt makes what comes from the client fit a link with other rates or without speech detection.
// The caller must hold inbound.
func (s *session) adapt(l *link) error {
	s.hearing.Lock()
	s.modelHears = l.info().Capabilities.SpeechEvents
	s.hearing.Unlock()
	was, rate := s.linked.Load().info().InputRate, l.info().InputRate
	if was == rate {
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
	s.resampleIn = in
	s.look.resample(waiting, rate)
	s.up.resample(waiting, audio.Bytes(rate, upBacklog), audio.Bytes(rate, longestQueued))
	s.hearing.Lock()
	defer s.hearing.Unlock()
	if s.ear != nil {
		s.earFrom += s.ear.ClockMS()
		s.ear = nil
	}
	return nil
}
