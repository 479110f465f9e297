package metrics

import (
	"cmp"
	"maps"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/spec"
)

type toolKey struct {
	tool string
	mode spec.Mode
}

// KnowTools adds counters for new tools. It may run concurrently with everything except Know and itself.
func (m *Metrics) KnowTools(tools *registry.Snapshot) {
	all := maps.Clone(*m.tools.Load())
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
			all[toolKey{id, mode}] = true
			m.start(ofTool, map[string]string{"tool": id, "mode": string(mode)})
		}
	}
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
		m.add("chat_cost_usd_total", r.Spent.Micros.Dollars())
	}
	if r.Event == audit.EventClaim {
		m.count("claims_unmatched_total", string(r.Mode), r.Why)
	}
	if r.Event != audit.EventTool && r.Event != audit.EventConfirmation {
		return
	}
	tool, mode := cmp.Or(r.ToolVariant, r.ToolID), string(r.Mode)
	if !(*m.tools.Load())[toolKey{tool, r.Mode}] {
		tool = unknown
		if r.Mode != spec.ModeText {
			mode = string(spec.ModeVoice)
		}
	}
	if r.Confirmation != "" {
		m.count("confirmations_total", tool, r.Confirmation)
		if r.Waited > 0 && !r.CacheHit {
			m.observe("confirmation_wait_seconds", r.Waited.Seconds(), r.Confirmation)
		}
	}
	if r.Event != audit.EventTool {
		return
	}
	switch {
	case r.CacheHit:
		m.count("tool_calls_total", tool, mode, wasCached)
		return // the tool didn't run
	case r.OK:
		m.count("tool_calls_total", tool, mode, wentWell)
	default:
		m.count("tool_calls_total", tool, mode, string(r.ErrorType))
	}
	if r.DurationMS > 0 {
		m.observe("tool_seconds", (time.Duration(r.DurationMS) * time.Millisecond).Seconds(), tool, "run")
		m.observe("tool_seconds", r.Queued.Seconds(), tool, "queued")
	}
	if len(r.Clamped) > 0 {
		m.count("tool_clamped_total", tool, mode)
	}
	if r.ErrorType == registry.ErrorConflict && r.PartialSideEffects {
		m.count("ledger_conflicts_total", tool)
	}
}
