package registry

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts"
)

// condition is one that does not hold; empty if all do.
type condition string

// The conditions. They are looked at in this order, so byTime means that all others hold.
const (
	byAgent   condition = "agent"
	byScope   condition = "scope"
	byFeature condition = "feature"
	byTime    condition = "time"
)

// lacks returns the first condition that does not hold for a conversation, at its Now.
func (t *Tool) lacks(s Session, feature func(agent, name string) bool) condition {
	a := t.Availability
	if a == nil {
		return ""
	}
	switch {
	case len(a.Agents) > 0 && !slices.Contains(a.Agents, s.Agent):
		return byAgent
	case len(a.Scopes) > 0 && !slices.ContainsFunc(a.Scopes, func(scope string) bool { return slices.Contains(s.Scopes, scope) }):
		return byScope
	case slices.ContainsFunc(a.Features, func(name string) bool { return feature == nil || !feature(s.Agent, name) }):
		return byFeature
	case len(a.Times) > 0 && !t.compiled.Open(s.Now):
		return byTime
	}
	return ""
}

// Available returns a snapshot of the same version without the tools whose availability does not hold for a
// conversation at its Now. Of those that only the time withholds a call can still be prepared: it is refused
// by [Prepared.Unavailable], with when it can be made. A nil snapshot stays nil.
func (s *Snapshot) Available(session Session) *Snapshot {
	if s == nil {
		return nil
	}
	why := map[*Tool]condition{}
	for _, t := range s.sorted {
		if lacks := t.lacks(session, s.opts.Feature); lacks != "" {
			why[t] = lacks
		}
	}
	if len(why) == 0 {
		return s
	}
	sub := s.having(func(t *Tool) bool { return why[t] == "" })
	for t, lacks := range why {
		if lacks == byTime && len(t.Dynamic) == 0 { // whose enums nobody fills any more
			if sub.closed == nil {
				sub.closed = map[string]*Tool{}
			}
			sub.closed[t.ToolID] = t
		}
	}
	return sub
}

// Unavailable returns the answer to a call whose tool is not available to the session at its Now, and nil
// if it is. A call of a tool that the session began without is always refused.
func (p *Prepared) Unavailable(s Session) *Envelope {
	lacks := p.tool.lacks(s, p.snapshot.opts.Feature)
	if lacks == "" && !p.closed {
		return nil
	}
	if lacks == "" {
		lacks = byTime
	}
	var next time.Time
	when := ""
	if lacks == byTime {
		if next = p.tool.compiled.Opens(s.Now); !next.IsZero() {
			when = next.Format("Mon 2 Jan 2006, 15:04") + " (" + next.Location().String() + ")"
		}
	}
	words := prompts.NotAvailable(p.tool.ToolID)
	if when != "" {
		words = prompts.NotAvailableNow(p.tool.ToolID, when)
	}
	told := NewError(ErrorUnavailable, words)
	details := struct {
		Reason      condition `json:"reason"`
		AvailableAt string    `json:"available_at,omitempty"`
	}{Reason: lacks}
	if !next.IsZero() {
		details.AvailableAt, told.Retryable = next.UTC().Format(time.RFC3339), true
	}
	told.Details, _ = json.Marshal(details) // only texts: it cannot fail
	env := p.Refuse(told)
	return &env
}
