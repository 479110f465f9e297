package metrics

import (
	"cmp"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/spec"
)

type toolKey struct {
	tool string
	mode spec.Mode
}

type tool struct {
	calls, answers set[prometheus.Counter]
	queued, took   prometheus.Observer
	clamped        prometheus.Counter
	conflicts      prometheus.Counter
}

func (m *Metrics) toolCounters(tools *registry.Snapshot) map[toolKey]*tool {
	all := map[toolKey]*tool{}
	for _, mode := range modes {
		ids := []string{unknown}
		if tools != nil {
			for _, t := range tools.Tools(mode) {
				ids = append(ids, t.ToolID)
				for _, v := range tools.Versions(t.ToolID) {
					ids = append(ids, v.ID)
				}
			}
		}
		for _, id := range ids {
			all[toolKey{id, mode}] = &tool{
				calls:     counterSet(m.counters["tool_calls_total"], outcomes(), id, string(mode)),
				answers:   counterSet(m.counters["confirmations_total"], asked, id),
				queued:    m.histograms["tool_seconds"].WithLabelValues(id, "queued"),
				took:      m.histograms["tool_seconds"].WithLabelValues(id, "run"),
				clamped:   m.counters["tool_clamped_total"].WithLabelValues(id, string(mode)),
				conflicts: m.counters["ledger_conflicts_total"].WithLabelValues(id),
			}
		}
	}
	return all
}

// KnowTools adds counters for new tools. It may run concurrently with everything except Know and itself.
func (m *Metrics) KnowTools(tools *registry.Snapshot) {
	all := maps.Clone(*m.tools.Load())
	maps.Copy(all, m.toolCounters(tools))
	m.tools.Store(&all)
}

const (
	wentWell  = "ok"
	wasCached = "cached"
)

func outcomes() []string {
	all := []string{wentWell, wasCached}
	for _, t := range registry.ErrorTypes() {
		all = append(all, string(t))
	}
	return all
}

// Audited counts an audit record of a tool call or of a text turn's cost, and ignores others. It doesn't block.
func (m *Metrics) Audited(r audit.Record) {
	if r.Event == audit.EventTurnCost && r.Spent != nil && r.Spent.Micros > 0 {
		m.chatCost.Add(r.Spent.Micros.Dollars())
	}
	if r.Event == audit.EventClaim {
		m.claims[r.Mode].with(r.Why).Inc()
	}
	if r.Event != audit.EventTool && r.Event != audit.EventConfirmation {
		return
	}
	tools := *m.tools.Load()
	t := tools[toolKey{cmp.Or(r.ToolVariant, r.ToolID), r.Mode}]
	if t == nil {
		t = tools[toolKey{unknown, spec.ModeVoice}]
		if r.Mode == spec.ModeText {
			t = tools[toolKey{unknown, spec.ModeText}]
		}
	}
	if r.Confirmation != "" {
		t.answers.with(r.Confirmation).Inc()
		if r.Waited > 0 && !r.CacheHit {
			m.waited.with(r.Confirmation).Observe(r.Waited.Seconds())
		}
	}
	if r.Event != audit.EventTool {
		return
	}
	switch {
	case r.CacheHit:
		t.calls.with(wasCached).Inc()
		return // the tool didn't run
	case r.OK:
		t.calls.with(wentWell).Inc()
	default:
		t.calls.with(string(r.ErrorType)).Inc()
	}
	if r.DurationMS > 0 {
		t.took.Observe((time.Duration(r.DurationMS) * time.Millisecond).Seconds())
		t.queued.Observe(r.Queued.Seconds())
	}
	if len(r.Clamped) > 0 {
		t.clamped.Inc()
	}
	if r.ErrorType == registry.ErrorConflict && r.PartialSideEffects {
		t.conflicts.Inc()
	}
}
