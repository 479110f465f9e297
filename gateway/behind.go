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

// lateness returns the lateness of the loops that read the request's listener.
func (s *Server) lateness(r *http.Request) nonblock.Lateness {
	if s.opts.Lateness != nil {
		return s.opts.Lateness()
	}
	if c := connOf(r.Context()); c != nil {
		return c.Loops().Lateness()
	}
	return nonblock.Lateness{}
}

// behindWords explains why no session begins while the gateway is behind.
func behindWords(late nonblock.Lateness) string {
	return fmt.Sprintf("The gateway has been overloaded since %s: it reads client data up to %.1f s late and accepts no "+
		"new sessions. Try again in a moment.",
		late.Since.UTC().Format(time.RFC3339), late.Longest.Seconds())
}

// logLateness logs that the loops have fallen behind or caught up.
func logLateness(logger *slog.Logger, late nonblock.Lateness) {
	numbers := []any{"late_ms", late.Longest.Milliseconds(), "since", late.Since.UTC()}
	if late.Behind {
		logger.Warn("behind: the gateway reads from clients and models seconds late and accepts no new sessions; "+
			"give it more CPU", numbers...)
		return
	}
	logger.Warn("caught up: the gateway reads in time again and accepts sessions", numbers...)
}

// overload returns the gateway's overload state.
func (s *Server) overload() quota.State {
	if s.opts.Overload == nil {
		return quota.State{}
	}
	return s.opts.Overload()
}

// overloadWords explain why no session begins.
var overloadWords = map[quota.Reason]string{
	quota.Memory: "The gateway is low on memory and accepts no new sessions. Try again in a moment.",
	quota.Store:  "The gateway cannot reach its store and accepts no new sessions. Try again in a moment.",
}

// busy answers a client that wants a new session while the gateway is late or overloaded.
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
