package openai

import (
	"sync/atomic"

	"voicegw/transport"
)

// counters count the unusual frames.
type counters struct{ malformed, unknowns, slow atomic.Int64 }

// Stats implements transport.Conn.
func (c *counters) Stats() transport.Stats {
	return transport.Stats{
		UnknownEvents: c.unknowns.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load(),
	}
}
