package session

import (
	"time"

	"voicegw/internal/auth"
	"voicegw/orchestrator"
)

// Credentials checks credentials that were accepted earlier; *auth.Current implements it. Its methods may be called
// concurrently, with locks held, and must not wait.
type Credentials interface {
	// Admits reports whether an admitted principal would be admitted now.
	Admits(p auth.Principal, now time.Time) bool
	// Lapses returns when a session that p started must end; zero if it need not.
	Lapses(p auth.Principal) time.Time
}

// stillIn reports whether the principal of a session would be admitted now.
func (o *Options) stillIn(p auth.Principal) bool {
	return o.Credentials == nil || o.Credentials.Admits(p, time.Now())
}

// lapses returns when the session must end with its client's credentials. The caller must hold mu.
func (s *session) lapses() time.Time {
	if s.opts.Credentials == nil {
		return time.Time{}
	}
	return s.opts.Credentials.Lapses(s.principal.Value())
}

// watchLapse schedules the session's end with its client's credentials.
func (s *session) watchLapse() {
	s.mu.Lock()
	at := s.lapses()
	s.mu.Unlock()
	s.dispatch(orchestrator.Lapse{At: at})
}

// WatchLapses applies the present configuration of credentials to all sessions.
func (m *Manager) WatchLapses() {
	all := m.roster.all()
	for _, s := range all {
		s.watchLapse()
	}
}
