package registry

import "slices"

// permits reports whether a conversation with these scopes may have the tool: it has all that the tool requires, and
// one of those of its availability.
func (t *Tool) permits(scopes []string) bool {
	if a := t.Availability; a != nil && len(a.Scopes) > 0 && !slices.ContainsFunc(a.Scopes, func(one string) bool { return slices.Contains(scopes, one) }) {
		return false
	}
	return !slices.ContainsFunc(t.Requires, func(needed string) bool { return !slices.Contains(scopes, needed) })
}

// Permitted returns a snapshot of the same version without the tools for which these scopes are not enough. The tools of the client and the built-in ones require none; if no other tool is left, there
// are no built-in ones either, as with [Snapshot.Only]. A nil snapshot stays nil.
func (s *Snapshot) Permitted(scopes []string) *Snapshot {
	if s == nil || !slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !t.permits(scopes) }) {
		return s
	}
	return s.having(func(t *Tool) bool { return t.permits(scopes) })
}

// Selection says which tools of a snapshot a session or a turn in text has.
type Selection struct {
	// Session is the session or the turn: its agent, mode, user, scopes and Now count.
	Session Session
	// Only are the ids of the only tools that the agent may use; nil means all.
	Only []string
	// Live returns the live values of the tools' enums; see [Snapshot.Fill].
	Live LiveValues
	// SwitchTo are the agents to which the agent may hand its user over; see [Snapshot.Switching].
	SwitchTo []SwitchTarget
}

// For returns the snapshot that a session or a turn in text keeps. Everything that withholds a tool is
// applied here, so that what a model is told of and what it may call are the same: the agent's tools, the
// scopes that tools require, their availability, and live values. A nil snapshot stays nil.
func (s *Snapshot) For(sel Selection) *Snapshot {
	if s == nil {
		return nil
	}
	if sel.Only != nil {
		s = s.Only(sel.Only)
	}
	return s.Permitted(sel.Session.Scopes).Available(sel.Session).Fill(sel.Session, sel.Live).Switching(sel.SwitchTo)
}
