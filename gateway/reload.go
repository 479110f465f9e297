package gateway

import (
	"errors"
	"net/http"
)

// Reloaded is the result of a reload and the response of POST /v1/admin/reload. It has the keys of settings, never
// values.
type Reloaded struct {
	// Changed are the applied settings, NeedsRestart those that need a restart.
	Changed      []string `json:"changed"`
	NeedsRestart []string `json:"needs_restart"`
	// SessionsEnded is the number of sessions ended because their credentials were revoked.
	SessionsEnded int `json:"sessions_ended"`
}

// ReloadProblem is a problem of a configuration. It never contains a secret.
type ReloadProblem struct {
	Where   string `json:"where"` // a file with a line, a variable or a flag
	Message string `json:"message"`
}

// ReloadError means that a configuration is invalid, and that nothing has changed.
type ReloadError struct{ Problems []ReloadProblem }

// Error returns the first problem.
func (e *ReloadError) Error() string {
	if len(e.Problems) == 0 {
		return "invalid configuration"
	}
	return "invalid configuration: " + e.Problems[0].Where + ": " + e.Problems[0].Message
}

func (s operatorAPI) reload(w http.ResponseWriter, r *http.Request) {
	done, err := s.opts.Reload()
	if wrong, ok := errors.AsType[*ReloadError](err); ok {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": map[string]any{
			"code": "invalid_configuration", "message": "The configuration is invalid; the current one remains in use.",
			"problems": wrong.Problems,
		}})
		return
	}
	if err != nil {
		s.opts.Logger.Error("reloading the configuration failed", "error", err, "addr", s.clientAddr(r).String())
		problem(w, http.StatusInternalServerError, "internal", "Reloading the configuration failed; see the gateway's log.")
		return
	}
	answer(w, http.StatusOK, done)
}
