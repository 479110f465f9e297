package gateway

import (
	"errors"
	"net/http"
)

// Reloaded is what came of reading the configuration again: the answer of POST /v1/admin/reload. It
// holds the keys of settings, never their values.
type Reloaded struct {
	// Changed are the settings that were taken over, NeedsRestart those that count from the next start.
	Changed      []string `json:"changed"`
	NeedsRestart []string `json:"needs_restart"`
	// SessionsEnded is how many sessions ended because their key or issuer is not let in any more.
	SessionsEnded int `json:"sessions_ended"`
}

// ReloadProblem is one thing that is wrong with a configuration. It never holds a secret.
type ReloadProblem struct {
	Where   string `json:"where"` // a file with a line, a variable or a flag
	Message string `json:"message"`
}

// ReloadError says that a configuration cannot be used, and that nothing has changed.
type ReloadError struct{ Problems []ReloadProblem }

// Error returns the first problem.
func (e *ReloadError) Error() string {
	if len(e.Problems) == 0 {
		return "the configuration cannot be used"
	}
	return "the configuration cannot be used: " + e.Problems[0].Where + ": " + e.Problems[0].Message
}

// reload reads the configuration again, for an operator.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	done, err := s.opts.Reload()
	if wrong, ok := errors.AsType[*ReloadError](err); ok {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": map[string]any{
			"code": "invalid_configuration", "message": "The configuration cannot be used, and the one before stays.", "problems": wrong.Problems,
		}})
		return
	}
	if err != nil {
		s.opts.Logger.Error("the configuration could not be read again", "error", err, "addr", s.clientAddr(r).String())
		problem(w, http.StatusInternalServerError, "internal", "The configuration could not be read again; the gateway's log says why.")
		return
	}
	answer(w, http.StatusOK, done)
}
