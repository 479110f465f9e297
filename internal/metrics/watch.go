package metrics

import (
	"cmp"
	"slices"
	"time"

	"voicegw/session"
	"voicegw/transport"
)

// watcher counts the events of sessions with one provider's model. Immutable.
type watcher struct {
	*Metrics
	provider, model string
}

// Observe returns the event counter for sessions with a provider's model; it is a session.Observe.
func (m *Metrics) Observe(provider, model string) func(session.Event) {
	if provider == "" { // for events without a provider
		return watcher{Metrics: m}.take
	}
	of := providerModel{m.known(provider), m.knownModel(provider, model)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started[of] {
		m.started[of] = true
		m.start(ofProvider, map[string]string{"provider": of.provider, "model": of.model})
	}
	return watcher{m, of.provider, of.model}.take
}

// tokenKinds: cached tokens are part of the input of their modality but are counted separately.
var tokenKinds = []struct {
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
}

func tokenEnds() (all [][]string) {
	for _, k := range tokenKinds {
		all = append(all, []string{k.direction, k.modality, k.cached})
	}
	return all
}

func (w watcher) take(e session.Event) {
	p := w.provider
	switch e := e.(type) {
	case session.Refused:
		w.count("sessions_refused_total", e.Reason)
	case session.Returned:
		w.count("resume_total", e.Outcome)
		if e.Took > 0 {
			w.observe("resume_seconds", e.Took.Seconds(), e.Outcome)
		}
	case session.Charged:
		w.add("cost_usd_total", e.Cost.Dollars(), p, w.model)
	case session.TurnOver:
		w.turn(e)
	case session.Sound:
		w.sound(e)
	case session.Failed:
		w.count("turn_failures_total", p, string(e.Code))
	case session.Interrupted:
		w.interrupted(e)
	case session.Nudged:
		w.count("nudges_total", p)
	case session.Rejected:
		w.count("client_messages_rejected_total", e.Code)
	case session.Slow:
		w.count("slow_clients_total", p)
	default:
		w.ofSession(e)
	}
}

func (w watcher) ofSession(e session.Event) {
	p := w.provider
	switch e := e.(type) {
	case session.Started:
		w.begun(e)
	case session.Ended:
		w.count("sessions_ended_total", p, e.Reason)
		w.observe("session_duration_seconds", e.Lasted.Seconds(), p)
	case session.Dialed:
		if e.Kind != 0 {
			w.count("provider_connects_total", p, e.Kind.String())
			return
		}
		w.count("provider_connects_total", p, dialedOK)
		w.observe("provider_connect_seconds", e.Took.Seconds(), p, string(e.How))
	case session.Broken:
		w.count("provider_closes_total", p, kindOf(e.Kind), usualCode(e.Code))
	case session.Reported:
		w.count("provider_errors_total", p, e.Kind.String())
	case session.AnswerFailed:
		w.count("provider_answers_failed_total", p, kindOf(e.Kind))
	case session.Skipped:
		w.add("provider_events_skipped_total", float64(e.UnknownEvents), p, "unknown")
		w.add("provider_events_skipped_total", float64(e.MalformedEvents), p, "malformed")
	case session.Relinked:
		if slices.Contains(triggers, e.Why) {
			w.count("rotations_total", p, string(e.Why), string(cmp.Or(e.How, failed)))
			w.observe("rotation_gap_seconds", e.Gap.Seconds(), p, string(e.Why))
		}
	}
}

func (w watcher) begun(e session.Started) {
	w.count("sessions_started_total", w.provider, w.model, string(e.Entry))
	stages := map[string]time.Duration{"total": e.Total}
	if e.Entry != session.EntryTakeover { // whose stages differ
		stages["wait"], stages["identify"], stages["connect"] = e.Waited, e.Identified, e.Connected
	}
	for stage, took := range stages {
		w.observe("session_start_seconds", took.Seconds(), w.provider, stage)
	}
}

func (w watcher) turn(e session.TurnOver) {
	w.count("turns_total", w.provider, w.model, string(e.Status))
	for _, k := range tokenKinds {
		if n := k.of(e.Usage); n > 0 {
			w.add("tokens_total", float64(n), w.provider, w.model, k.direction, k.modality, k.cached)
		}
	}
	if e.Cost.Estimated > 0 {
		w.count("turns_estimated_total", w.provider, w.model)
	}
	if e.Cost.Unpriced > 0 {
		w.count("turns_unpriced_total", w.provider, w.model)
	}
	if l := e.Latency; l != nil {
		parts := map[string]time.Duration{"total": l.Total, "detection": l.Detection, "provider": l.Provider, "gateway": l.Gateway}
		for part, took := range parts {
			w.observe("turn_first_audio_seconds", took.Seconds(), w.provider, w.model, part)
		}
	}
}

func (w watcher) sound(e session.Sound) {
	w.add("audio_seconds_total", e.Up.Seconds(), "up", w.provider)
	w.add("audio_seconds_total", e.Down.Seconds(), "down", w.provider)
	w.add("audio_dropped_seconds_total", e.Backlog.Seconds(), "up", "backlog")
	w.add("audio_dropped_seconds_total", e.Ahead.Seconds(), "up", "ahead")
	w.add("audio_dropped_seconds_total", e.Unheard.Seconds(), "down", "unheard")
}

func (w watcher) interrupted(e session.Interrupted) {
	w.count("interruptions_total", w.provider, string(e.By))
	if e.After > 0 {
		w.observe("bargein_seconds", e.After.Seconds(), w.provider)
	}
	if e.SentMS > 0 {
		w.observe("truncated_heard_ratio", min(float64(e.HeardMS)/float64(e.SentMS), 1), w.provider)
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
