package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"voicegw/registry"
	"voicegw/store"
)

// confirmationBody is the body of POST /v1/confirmations. The token is a secret, so it isn't in the URL, which
// proxies log.
type confirmationBody struct {
	Token    string `json:"token"`
	Approved *bool  `json:"approved"`
}

// confirmationAnswer is the response.
type confirmationAnswer struct {
	Outcome   string `json:"outcome"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// Told means that the conversation still runs here and its model gets the outcome. Otherwise Envelope is the
	// result of an approved action.
	Told     bool               `json:"told"`
	Envelope *registry.Envelope `json:"envelope,omitempty"`
}

const maxConfirmationBody = 4 << 10

// confirm records the user's decision, sent by the client's backend.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request) {
	token, approved, ok := readConfirmation(http.MaxBytesReader(w, r.Body, maxConfirmationBody))
	if !ok {
		// The error doesn't repeat the body, which may contain a token.
		problem(w, http.StatusBadRequest, "invalid_message",
			`The body must be {"token": "cf_…", "approved": true} or false, and nothing else.`)
		return
	}
	done, err := s.opts.Sessions.Confirm(r.Context(), token, approved, mine(r.Context()))
	switch {
	case err == nil:
		s.opts.Logger.Info("confirmation answered by the API", "session_id", done.SessionID, "tool", done.Tool,
			"outcome", string(done.Outcome))
		answer(w, http.StatusOK, confirmationAnswer{
			Outcome: string(done.Outcome), SessionID: done.SessionID, Tool: done.Tool, Told: done.Told, Envelope: done.Envelope,
		})
	case s.confirmationRefused(w, err):
	default:
		s.storeFailed(w, "recording an approval decision failed", err)
	}
}

// confirmationRefused answers a decision that cannot be recorded, and reports whether err is of that kind.
func (s *Server) confirmationRefused(w http.ResponseWriter, err error) bool {
	switch {
	case errors.Is(err, store.ErrUnknown):
		problem(w, http.StatusNotFound, "confirmation_unknown", "Unknown confirmation; use the token of a confirmation.request.")
	case errors.Is(err, store.ErrUsed):
		problem(w, http.StatusConflict, "confirmation_used", "This confirmation was already answered.")
	case errors.Is(err, store.ErrExpired):
		problem(w, http.StatusGone, "confirmation_expired", "This confirmation has expired. The tool must be called again.")
	default:
		return false
	}
	return true
}

func readConfirmation(body io.Reader) (token string, approved, ok bool) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	var b confirmationBody
	if d.Decode(&b) != nil || b.Token == "" || b.Approved == nil {
		return "", false, false
	}
	_, err := d.Token()
	return b.Token, *b.Approved, errors.Is(err, io.EOF)
}

// confirmationMoved answers the old path, which contains the token, without repeating it.
func confirmationMoved(w http.ResponseWriter, _ *http.Request) {
	problem(w, http.StatusGone, "gone", `Send the token in the body: POST /v1/confirmations with {"token": "cf_…", `+
		`"approved": true} or false.`)
}
