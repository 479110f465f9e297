package session

import (
	"time"

	"voicegw/internal/auth"
	"voicegw/orchestrator"
)

// Credentials says what has become of credentials; *auth.Current implements it. Its methods may be called
// concurrently, with locks held, and must not wait.
type Credentials interface {
	// Admits reports whether a principal that was let in before would be let in now.
	Admits(p auth.Principal, now time.Time) bool
	// Lapses returns when a session that p has let in must end; zero if it goes on.
	Lapses(p auth.Principal) time.Time
}

// stillIn reports whether whoever has let a session's client in would still be let in.
func (o *Options) stillIn(p auth.Principal) bool {
	return o.Credentials == nil || o.Credentials.Admits(p, time.Now())
}

// lapses returns when the session must end with the credentials of its client. The caller must hold mu.
func (s *session) lapses() time.Time {
	if s.opts.Credentials == nil {
		return time.Time{}
	}
	return s.opts.Credentials.Lapses(s.principal.Value())
}

// watchLapse has the session end with the credentials of its client, if that is wanted.
func (s *session) watchLapse() {
	s.mu.Lock()
	at := s.lapses()
	s.mu.Unlock()
	s.dispatch(orchestrator.Lapse{At: at})
}

// WatchLapses has each session end with the credentials of its client as they are configured now.
func (m *Manager) WatchLapses() {
	all := m.roster.all()
	for _, s := range all {
		s.watchLapse()
	}
}
