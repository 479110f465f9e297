package registry

import "slices"

func (t *Tool) permits(scopes []string) bool {
	if a := t.Availability; a != nil && len(a.Scopes) > 0 &&
		!slices.ContainsFunc(a.Scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return false
	}
	return !slices.ContainsFunc(t.Requires, func(needed string) bool { return !slices.Contains(scopes, needed) })
}

// Permitted returns a snapshot of the same version without the tools that need more scopes. If no tool other than the
// client's and the built-in ones is left, the built-in ones are dropped too, as in [Snapshot.Only]. A nil snapshot
// stays nil.
func (s *Snapshot) Permitted(scopes []string) *Snapshot {
	if s == nil || !slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !t.permits(scopes) }) {
		return s
	}
	return s.having(func(t *Tool) bool { return t.permits(scopes) })
}

// Selection selects the tools of a session or a text turn.
type Selection struct {
	// Session's agent, mode, user, scopes and Now count.
	Session Session
	// Only are the ids of the agent's tools; nil means all.
	Only []string
	// Live returns live values for enums; see [Snapshot.Fill].
	Live LiveValues
	// SwitchTo are the agents that the agent may hand the user over to; see [Snapshot.Switching].
	SwitchTo []SwitchTarget
}

// For returns the snapshot for a session or a text turn. It applies the agent's tools, required scopes, availability,
// and live values, so that a model can call exactly the tools it gets. A nil snapshot stays nil.
func (s *Snapshot) For(sel Selection) *Snapshot {
	if s == nil {
		return nil
	}
	if sel.Only != nil {
		s = s.Only(sel.Only)
	}
	return s.Permitted(sel.Session.Scopes).Available(sel.Session).Fill(sel.Session, sel.Live).Switching(sel.SwitchTo)
}
