package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"voicegw/orchestrator"
	"voicegw/session"
	"voicegw/transport"
)

// watcher counts the events of sessions with one provider's model. Its series are looked up once. Immutable.
type watcher struct {
	m        *Metrics
	provider string
	model    string

	unpriced, estimated prometheus.Counter

	started, ended, turns, failures, cuts, rejected set[prometheus.Counter]
	dialed, reported                                set[prometheus.Counter]
	rotated                                         map[orchestrator.LinkReason]set[prometheus.Counter]
	gaps, connected                                 set[prometheus.Observer]

	lasted, bargein, heard                      prometheus.Observer
	waited, identified, reached, began          prometheus.Observer
	total, detection, answer, gateway           prometheus.Observer
	nudges, slow, up, down                      prometheus.Counter
	backlog, ahead, unheard, strange, malformed prometheus.Counter
	tokens                                      []tokenCount
}

type tokenCount struct {
	to prometheus.Counter
	of func(transport.Tokens) int64
}

// Observe returns the event counter for sessions with a provider's model; it is a session.Observe.
func (m *Metrics) Observe(provider, model string) func(session.Event) {
	key := providerModel{m.provider(provider), m.model(provider, model)}
	if provider == "" {
		key = providerModel{} // for events without a provider
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watchers[key]
	if w == nil {
		w = m.newWatcher(key)
		m.watchers[key] = w
	}
	return w.take
}

func (m *Metrics) newWatcher(of providerModel) *watcher {
	w := &watcher{m: m, provider: of.provider, model: of.model}
	if of.provider == "" {
		return w
	}
	p, c, h := of.provider, m.counters, m.histograms
	w.started = newSet(func(l ...string) prometheus.Counter { return c["sessions_started_total"].WithLabelValues(l...) }, entries,
		[]string{p, of.model})
	w.ended = counterSet(c["sessions_ended_total"], session.Reasons(), p)
	w.turns = counterSet(c["turns_total"], statuses, p, of.model)
	w.failures = counterSet(c["turn_failures_total"], failures, p)
	w.cuts = counterSet(c["interruptions_total"], cutters, p)
	w.rejected = counterSet(c["client_messages_rejected_total"], rejections)
	w.dialed = counterSet(c["provider_connects_total"], append(kindNames(), "ok"), p)
	w.reported = counterSet(c["provider_errors_total"], reportedKinds, p)
	w.connected = observerSet(h["provider_connect_seconds"], hows, p)
	w.gaps = observerSet(h["rotation_gap_seconds"], triggers, p)
	w.rotated = map[orchestrator.LinkReason]set[prometheus.Counter]{}
	for _, why := range triggers {
		w.rotated[why] = counterSet(c["rotations_total"], rotated, p, string(why))
	}
	w.lasted, w.bargein, w.heard = h["session_duration_seconds"].WithLabelValues(p), h["bargein_seconds"].WithLabelValues(p),
		h["truncated_heard_ratio"].WithLabelValues(p)
	stage := func(name string) prometheus.Observer { return h["session_start_seconds"].WithLabelValues(p, name) }
	w.waited, w.identified, w.reached, w.began = stage("wait"), stage("identify"), stage("connect"), stage("total")
	part := func(name string) prometheus.Observer {
		return h["turn_first_audio_seconds"].WithLabelValues(p, of.model, name)
	}
	w.total, w.detection, w.answer, w.gateway = part("total"), part("detection"), part("provider"), part("gateway")
	w.nudges, w.slow = c["nudges_total"].WithLabelValues(p), c["slow_clients_total"].WithLabelValues(p)
	w.up, w.down = c["audio_seconds_total"].WithLabelValues("up", p), c["audio_seconds_total"].WithLabelValues("down", p)
	dropped := c["audio_dropped_seconds_total"]
	w.backlog, w.ahead, w.unheard = dropped.WithLabelValues("up", "backlog"), dropped.WithLabelValues("up", "ahead"),
		dropped.WithLabelValues("down", "unheard")
	skipped := c["provider_events_skipped_total"]
	w.strange, w.malformed = skipped.WithLabelValues(p, "unknown"), skipped.WithLabelValues(p, "malformed")
	w.tokens = tokenCounts(c["tokens_total"], of)
	w.estimated = c["turns_estimated_total"].WithLabelValues(p, of.model)
	w.unpriced = c["turns_unpriced_total"].WithLabelValues(p, of.model)
	return w
}

// tokenCounts: cached tokens are part of the input of their modality but are counted separately.
func tokenCounts(v *prometheus.CounterVec, of providerModel) []tokenCount {
	var all []tokenCount
	for _, row := range []struct {
		direction, modality, cached string
		of                          func(transport.Tokens) int64
	}{
		{"input", "text", "no", func(t transport.Tokens) int64 { return t.InputText - t.CachedText }},
		{"input", "text", "yes", func(t transport.Tokens) int64 { return t.CachedText }},
		{"input", "audio", "no", func(t transport.Tokens) int64 { return t.InputAudio - t.CachedAudio }},
		{"input", "audio", "yes", func(t transport.Tokens) int64 { return t.CachedAudio }},
		{"input", other, "no", func(t transport.Tokens) int64 { return t.Input - t.InputText - t.InputAudio }},
		{"output", "text", "no", func(t transport.Tokens) int64 { return t.OutputText }},
		{"output", "audio", "no", func(t transport.Tokens) int64 { return t.OutputAudio }},
		{"output", other, "no", func(t transport.Tokens) int64 { return t.Output - t.OutputText - t.OutputAudio }},
	} {
		all = append(all, tokenCount{v.WithLabelValues(of.provider, of.model, row.direction, row.modality, row.cached), row.of})
	}
	return all
}

func (w *watcher) take(e session.Event) {
	switch e := e.(type) {
	case session.Refused:
		w.m.refused.with(e.Reason).Inc()
	case session.Returned:
		w.m.resumed.with(e.Outcome).Inc()
		if e.Took > 0 {
			w.m.returns.with(e.Outcome).Observe(e.Took.Seconds())
		}
	case session.Charged:
		w.m.counters["cost_usd_total"].WithLabelValues(w.provider, w.model).Add(e.Cost.Dollars())
	case session.TurnOver:
		w.turn(e)
	case session.Sound:
		w.sound(e)
	case session.Failed:
		w.failures.with(string(e.Code)).Inc()
	case session.Interrupted:
		w.interrupted(e)
	case session.Nudged:
		w.nudges.Inc()
	case session.Rejected:
		w.rejected.with(e.Code).Inc()
	case session.Slow:
		w.slow.Inc()
	default:
		w.ofSession(e)
	}
}

func (w *watcher) ofSession(e session.Event) {
	switch e := e.(type) {
	case session.Started:
		w.begun(e)
	case session.Ended:
		w.ended.with(e.Reason).Inc()
		w.lasted.Observe(e.Lasted.Seconds())
	case session.Dialed:
		if e.Kind != 0 {
			w.dialed.with(e.Kind.String()).Inc()
			return
		}
		w.dialed.with("ok").Inc()
		w.connected.with(string(e.How)).Observe(e.Took.Seconds())
	case session.Broken:
		w.m.counters["provider_closes_total"].WithLabelValues(w.provider, kindOf(e.Kind), usualCode(e.Code)).Inc()
	case session.Reported:
		w.reported.with(e.Kind.String()).Inc()
	case session.AnswerFailed:
		w.m.counters["provider_answers_failed_total"].WithLabelValues(w.provider, kindOf(e.Kind)).Inc()
	case session.Skipped:
		w.strange.Add(float64(e.UnknownEvents))
		w.malformed.Add(float64(e.MalformedEvents))
	case session.Relinked:
		how := e.How
		if how == "" {
			how = failed
		}
		if outcomes, ok := w.rotated[e.Why]; ok {
			outcomes.with(string(how)).Inc()
			w.gaps.with(string(e.Why)).Observe(e.Gap.Seconds())
		}
	}
}

func (w *watcher) begun(e session.Started) {
	w.started.with(string(e.Entry)).Inc()
	w.began.Observe(e.Total.Seconds())
	if e.Entry == session.EntryTakeover {
		return // its stages differ
	}
	w.waited.Observe(e.Waited.Seconds())
	w.identified.Observe(e.Identified.Seconds())
	w.reached.Observe(e.Connected.Seconds())
}

func (w *watcher) turn(e session.TurnOver) {
	w.turns.with(string(e.Status)).Inc()
	for _, t := range w.tokens {
		if n := t.of(e.Usage); n > 0 {
			t.to.Add(float64(n))
		}
	}
	w.pay(e)
	if l := e.Latency; l != nil {
		w.total.Observe(l.Total.Seconds())
		w.detection.Observe(l.Detection.Seconds())
		w.answer.Observe(l.Provider.Seconds())
		w.gateway.Observe(l.Gateway.Seconds())
	}
}

func (w *watcher) pay(e session.TurnOver) {
	if e.Cost.Estimated > 0 {
		w.estimated.Inc()
	}
	if e.Cost.Unpriced > 0 {
		w.unpriced.Inc()
	}
}

func (w *watcher) sound(e session.Sound) {
	for to, d := range map[prometheus.Counter]time.Duration{w.up: e.Up, w.down: e.Down, w.backlog: e.Backlog, w.ahead: e.Ahead,
		w.unheard: e.Unheard} {
		if d > 0 {
			to.Add(d.Seconds())
		}
	}
}

func (w *watcher) interrupted(e session.Interrupted) {
	w.cuts.with(string(e.By)).Inc()
	if e.After > 0 {
		w.bargein.Observe(e.After.Seconds())
	}
	if e.SentMS > 0 {
		w.heard.Observe(min(float64(e.HeardMS)/float64(e.SentMS), 1))
	}
}

func kindOf(k transport.Kind) string {
	for _, known := range kinds {
		if k == known {
			return k.String()
		}
	}
	return other
}
