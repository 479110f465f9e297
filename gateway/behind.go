package gateway

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
)

func (s *Server) lateness(r *http.Request) nonblock.Lateness {
	if s.opts.Lateness != nil {
		return s.opts.Lateness()
	}
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	if c := nonblock.Under(c); c != nil {
		return c.Loops().Lateness()
	}
	return nonblock.Lateness{}
}

func behindWords(late nonblock.Lateness) string {
	return fmt.Sprintf("The gateway has been overloaded since %s: it reads client data up to %.1f s late and accepts no "+
		"new sessions. Try again in a moment.",
		late.Since.UTC().Format(time.RFC3339), late.Longest.Seconds())
}

func logLateness(logger *slog.Logger, late nonblock.Lateness) {
	numbers := []any{"late_ms", late.Longest.Milliseconds(), "since", late.Since.UTC()}
	if late.Behind {
		logger.Warn("behind: the gateway reads from clients and models seconds late and accepts no new sessions; "+
			"give it more CPU", numbers...)
		return
	}
	logger.Warn("caught up: the gateway reads in time again and accepts sessions", numbers...)
}

func (s *Server) overload() quota.State {
	if s.opts.Overload == nil {
		return quota.State{}
	}
	return s.opts.Overload()
}

var overloadWords = map[quota.Reason]string{
	quota.Memory: "The gateway is low on memory and accepts no new sessions. Try again in a moment.",
	quota.Store:  "The gateway cannot reach its store and accepts no new sessions. Try again in a moment.",
}

func (s *Server) busy(addr netip.Addr, late nonblock.Lateness, over quota.State) *problem {
	if late.Behind {
		s.seldom.Info("session refused", "behind", "addr", addr.String(), "late", late.Longest)
		return refusal(http.StatusServiceUnavailable, "behind", behindWords(late)).after(5 * time.Second)
	}
	s.seldom.Info("session refused", "overloaded", "addr", addr.String(), "why", string(over.Reason))
	return refusal(http.StatusServiceUnavailable, "overloaded", overloadWords[over.Reason]).after(5 * time.Second)
}
