package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Approvals lists approved actions with unknown outcomes; see store.Approvals. Safe for concurrent use.
type Approvals interface {
	// Open returns them, oldest first.
	Open(ctx context.Context, now time.Time) ([]store.Approval, error)
}

const maxApprovals = 1000

func (s operatorAPI) approvals(w http.ResponseWriter, r *http.Request) *problem {
	list, err := s.opts.Approvals.Open(r.Context(), time.Now())
	if err != nil {
		return s.storeFailed("listing open approvals failed", err)
	}
	total := len(list)
	if list == nil {
		list = []store.Approval{}
	}
	return answer(w, http.StatusOK, map[string]any{"approvals": list[:min(total, maxApprovals)], "total": total})
}

// Blocks manages blocked users. It must be safe for concurrent use.
type Blocks interface {
	List() []store.Block
	Unblock(ctx context.Context, user string) (bool, error)
}

const timeForm = "2006-01-02T15:04:05.000Z"

func (s operatorAPI) blocks(w http.ResponseWriter, _ *http.Request) *problem {
	list := s.opts.Blocks.List()
	lines := make([]protocol.Block, 0, len(list))
	for _, b := range list {
		lines = append(lines, protocol.Block{User: b.User, Until: protocol.Time{Time: b.Until}})
	}
	return answer(w, http.StatusOK, map[string]any{"blocks": lines})
}

func (s operatorAPI) unblock(w http.ResponseWriter, r *http.Request) *problem {
	who, err := user.Stored(r.PathValue("user"))
	if err != nil {
		return invalid("The user in the path " + err.Error() + ".")
	}
	was, err := s.opts.Blocks.Unblock(r.Context(), who.String())
	switch {
	case err != nil:
		return s.storeFailed("removing a block failed", err)
	case !was:
		return refusal(http.StatusNotFound, "not_blocked",
			"The user "+clip(who.String())+" is not blocked; see GET /v1/blocks.")
	default:
		s.opts.Logger.Info("block ended by an operator", "addr", s.clientAddr(r).String())
		return done(w, http.StatusNoContent)
	}
}

// Drain drains this gateway. It must be safe for concurrent use.
type Drain interface {
	// Begin starts the drain, which ends everything after limit (zero: as configured), or shortens a running one.
	Begin(limit time.Duration)
	Progress() protocol.DrainProgress
}

const maxDrainMS = 24 * 60 * 60 * 1000

func (s operatorAPI) beginDrain(w http.ResponseWriter, r *http.Request) *problem {
	var body struct {
		TimeoutMS int64 `json:"timeout_ms"`
	}
	if r.ContentLength != 0 {
		if no := readBody(w, r, &body, true); no != nil {
			return no
		}
	}
	if body.TimeoutMS < 0 || body.TimeoutMS > maxDrainMS {
		return invalid(fmt.Sprintf("timeout_ms must be between 1 and %d, a day; 0 or a missing timeout_ms means the "+
			"gateway's drain_timeout.", maxDrainMS))
	}
	s.opts.Logger.Info("drain requested by an operator", "timeout_ms", body.TimeoutMS, "addr", s.clientAddr(r).String())
	s.opts.Drain.Begin(time.Duration(body.TimeoutMS) * time.Millisecond)
	return answer(w, http.StatusAccepted, s.opts.Drain.Progress())
}

func (s operatorAPI) showDrain(w http.ResponseWriter, _ *http.Request) *problem {
	return answer(w, http.StatusOK, s.opts.Drain.Progress())
}

// Reloaded is the result of a reload, with the keys of settings, never values.
type Reloaded struct {
	Changed       []string `json:"changed"`
	NeedsRestart  []string `json:"needs_restart"`
	SessionsEnded int      `json:"sessions_ended"`
}

// ReloadProblem is a problem of a configuration. It never contains a secret.
type ReloadProblem struct {
	Where   string `json:"where"` // a file with a line, a variable or a flag
	Message string `json:"message"`
}

// ReloadError means that a configuration is invalid, and that nothing has changed.
type ReloadError struct{ Problems []ReloadProblem }

func (e *ReloadError) Error() string {
	if len(e.Problems) == 0 {
		return "invalid configuration"
	}
	return "invalid configuration: " + e.Problems[0].Where + ": " + e.Problems[0].Message
}

func (s operatorAPI) reload(w http.ResponseWriter, r *http.Request) *problem {
	done, err := s.opts.Reload()
	if wrong, ok := errors.AsType[*ReloadError](err); ok {
		return &problem{status: http.StatusUnprocessableEntity, code: "invalid_configuration",
			message: "The configuration is invalid; the current one remains in use.",
			more:    map[string]any{"problems": wrong.Problems}}
	}
	if err != nil {
		s.opts.Logger.Error("reloading the configuration failed", "error", err, "addr", s.clientAddr(r).String())
		return refusal(http.StatusInternalServerError, "internal",
			"Reloading the configuration failed; see the gateway's log.")
	}
	return answer(w, http.StatusOK, done)
}

// listParameters returns the user in ?user=, or the problem. known are the list's other parameters.
func listParameters(q url.Values, known ...string) (who, wrong string) {
	known = append([]string{"user"}, known...)
	for name := range q {
		if !slices.Contains(known, name) {
			last := len(known) - 1
			return "", fmt.Sprintf("Unknown parameter %q; use %s and %s.", clip(name), strings.Join(known[:last], ", "), known[last])
		}
	}
	name := q.Get("user")
	if name == "" {
		return "", ""
	}
	u, err := user.Stored(name)
	if err != nil {
		return "", "The parameter user " + err.Error() + "."
	}
	return u.String(), ""
}
