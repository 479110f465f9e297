package gateway

import (
	"voicegw/internal/origin"
)

// Settings are the options that may change while the Server runs; see [Options].
type Settings struct {
	Hosts            origin.Hosts
	Origins          []origin.Pattern
	GuardCompletions bool
	Prices           string
	Turns            TurnLimits
}

// Reconfigure applies settings to future requests. Connections and messages above lower limits continue. It must not
// run concurrently with itself.
func (s *Server) Reconfigure(to Settings) {
	to.Turns = to.Turns.withDefaults()
	s.turns.limit(to.Turns)
	s.live.Store(&to)
}
