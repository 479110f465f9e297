package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
)

// lateness says how late the loops that read the sessions of the request's listener are.
func (s *Server) lateness(r *http.Request) nonblock.Lateness {
	if s.opts.Lateness != nil {
		return s.opts.Lateness()
	}
	if c := connOf(r.Context()); c != nil {
		return c.Loops().Lateness()
	}
	return nonblock.Lateness{}
}

// behindWords says why no session begins while the gateway is behind.
func behindWords(late nonblock.Lateness) string {
	return fmt.Sprintf("The gateway reads what clients send up to %.1f s late, since %s, and takes no new session until it has kept up for a few seconds; try again in a moment.",
		late.Longest.Seconds(), late.Since.UTC().Format(time.RFC3339))
}

// logLateness logs that the loops are late now, or have caught up.
func logLateness(logger *slog.Logger, late nonblock.Lateness) {
	numbers := []any{"late_ms", late.Longest.Milliseconds(), "since", late.Since.UTC()}
	if late.Behind {
		logger.Warn("behind: the gateway reads what clients and models send seconds late, and takes no new session meanwhile; it has too few processors, or they are taken away", numbers...)
		return
	}
	logger.Warn("caught up: the gateway reads in time again, and takes sessions", numbers...)
}

// overload says whether the gateway has more to do than it can.
func (s *Server) overload() quota.State {
	if s.opts.Overload == nil {
		return quota.State{}
	}
	return s.opts.Overload()
}

// overloadWords says why no session begins.
var overloadWords = map[quota.Reason]string{
	quota.Memory: "The gateway is short of memory and takes no new session until it has more; try again in a moment.",
	quota.Store:  "The gateway cannot reach its store and takes no new session until it can; try again in a moment.",
}

// busy answers a client that wants a new session of a gateway that takes none, because it is late or
// overloaded.
func (s *Server) busy(w http.ResponseWriter, addr netip.Addr, late nonblock.Lateness, over quota.State) {
	retryAfter(w, 5*time.Second)
	if late.Behind {
		s.seldom.Info("session refused", "behind", "addr", addr.String(), "late", late.Longest)
		problem(w, http.StatusServiceUnavailable, "behind", behindWords(late))
		return
	}
	s.seldom.Info("session refused", "overloaded", "addr", addr.String(), "why", string(over.Reason))
	problem(w, http.StatusServiceUnavailable, "overloaded", overloadWords[over.Reason])
}
