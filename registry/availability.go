package registry

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts"
)

// condition names the condition of an availability that doesn't hold; empty if all hold.
type condition string

// Conditions in the order of evaluation: byTime means that all others hold.
const (
	byAgent   condition = "agent"
	byScope   condition = "scope"
	byFeature condition = "feature"
	byTime    condition = "time"
)

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

// Available returns a snapshot of the same version without the tools that are unavailable to the session at its Now.
// Calls of tools that are only outside their times can still be prepared; [Prepared.Unavailable] refuses them with
// the next time. A nil snapshot stays nil.
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
		if lacks == byTime && len(t.Dynamic) == 0 { // its enums are no longer filled
			if sub.closed == nil {
				sub.closed = map[string]*Tool{}
			}
			sub.closed[t.ToolID] = t
		}
	}
	return sub
}

// Unavailable returns the refusal if the call's tool is unavailable at the session's Now, otherwise nil. Tools that
// the session started without are always refused.
func (p *Prepared) Unavailable(s Session) *Envelope {
	lacks := p.tool.lacks(s, p.snapshot.opts.Feature)
	if lacks == "" && !p.closed {
		return nil
	}
	lacks = cmp.Or(lacks, byTime)
	told := NewError(ErrorUnavailable, prompts.NotAvailable(p.tool.ToolID))
	details := struct {
		Reason      condition `json:"reason"`
		AvailableAt string    `json:"available_at,omitempty"`
	}{Reason: lacks}
	if next := p.tool.compiled.Opens(s.Now); lacks == byTime && !next.IsZero() {
		when := next.Format("Mon 2 Jan 2006, 15:04") + " (" + next.Location().String() + ")"
		told = NewError(ErrorUnavailable, prompts.NotAvailableNow(p.tool.ToolID, when))
		details.AvailableAt, told.Retryable = next.UTC().Format(time.RFC3339), true
	}
	told.Details, _ = json.Marshal(details) // strings only: cannot fail
	env := p.Refuse(told)
	return &env
}
