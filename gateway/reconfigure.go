package gateway

import (
	"voicegw/internal/origin"
)

// Settings are the options that may change while the Server answers; see the fields of [Options].
type Settings struct {
	Hosts            origin.Hosts
	Origins          []origin.Pattern
	GuardCompletions bool
	Prices           string
	Turns            TurnLimits
}

// Reconfigure takes over other settings, for requests that come from now on. Connections and messages
// beyond lower limits go on. It may be called concurrently with everything but itself.
func (s *Server) Reconfigure(to Settings) {
	to.Turns = to.Turns.withDefaults()
	s.turns.limit(to.Turns)
	s.live.Store(&to)
}
