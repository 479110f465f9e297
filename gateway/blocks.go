package gateway

import (
	"context"
	"net/http"
	"time"

	"voicegw/internal/user"
	"voicegw/store"
)

// Blocks manages blocked users. It must be safe for concurrent use.
type Blocks interface {
	// List returns the current blocks, sorted by user.
	List() []store.Block
	// Unblock ends a user's block and reports whether there was one.
	Unblock(ctx context.Context, user string) (bool, error)
}

// blockLine is a block in the list. Until is RFC 3339 in UTC with milliseconds.
type blockLine struct {
	User  string `json:"user"`
	Until string `json:"until"`
}

// timeForm is the gateway's time format.
const timeForm = "2006-01-02T15:04:05.000Z"

// blocks lists the blocked users.
func (s operatorAPI) blocks(w http.ResponseWriter, _ *http.Request) {
	list := s.opts.Blocks.List()
	lines := make([]blockLine, 0, len(list))
	for _, b := range list {
		lines = append(lines, blockLine{User: b.User, Until: b.Until.UTC().Format(timeForm)})
	}
	answer(w, http.StatusOK, map[string]any{"blocks": lines})
}

func (s operatorAPI) unblock(w http.ResponseWriter, r *http.Request) {
	who, err := user.Stored(r.PathValue("user"))
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid_message", "The user in the path "+err.Error()+".")
		return
	}
	was, err := s.opts.Blocks.Unblock(r.Context(), who.String())
	switch {
	case err != nil:
		s.storeFailed(w, "removing a block failed", err)
	case !was:
		problem(w, http.StatusNotFound, "not_blocked", "The user "+clip(who.String())+" is not blocked; see GET /v1/blocks.")
	default:
		s.opts.Logger.Info("block ended by an operator", "addr", s.clientAddr(r).String())
		w.WriteHeader(http.StatusNoContent)
	}
}

// storeFailed answers a request that failed because of the store.
func (s *Server) storeFailed(w http.ResponseWriter, what string, err error) {
	s.opts.Logger.Error(what, "error", err)
	retryAfter(w, 5*time.Second)
	problem(w, http.StatusServiceUnavailable, "store_unavailable", "The gateway's store is unavailable; try again in a moment.")
}
