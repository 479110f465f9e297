package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"voicegw/registry"
	"voicegw/store"
)

// confirmationBody is what POST /v1/confirmations/{token} takes.
type confirmationBody struct {
	Approved *bool `json:"approved"`
}

// confirmationAnswer is what it answers with.
type confirmationAnswer struct {
	// Outcome is approved or denied.
	Outcome   string `json:"outcome"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// Told says that the conversation still runs here: its model is told of the outcome.
	// Otherwise Envelope is what came of an approved action.
	Told     bool               `json:"told"`
	Envelope *registry.Envelope `json:"envelope,omitempty"`
}

// maxConfirmationBody bounds the body, in bytes.
const maxConfirmationBody = 4 << 10

// confirm records the answer to a confirmation, for the backend of a client.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request) {
	approved, ok := readApproved(http.MaxBytesReader(w, r.Body, maxConfirmationBody))
	if !ok {
		problem(w, http.StatusBadRequest, "invalid_message", `The body must be {"approved": true} or {"approved": false}.`)
		return
	}
	done, err := s.opts.Sessions.Confirm(r.Context(), r.PathValue("token"), approved)
	switch {
	case err == nil:
		s.opts.Logger.Info("confirmation answered by the API", "session_id", done.SessionID, "tool", done.Tool, "outcome", string(done.Outcome))
		answer(w, http.StatusOK, confirmationAnswer{
			Outcome: string(done.Outcome), SessionID: done.SessionID, Tool: done.Tool, Told: done.Told, Envelope: done.Envelope,
		})
	case s.confirmationRefused(w, err):
	default:
		s.storeFailed(w, "a confirmation cannot be answered", err)
	}
}

// confirmationRefused answers a request whose confirmation cannot be answered as it asks,
// and says whether err was of that kind.
func (s *Server) confirmationRefused(w http.ResponseWriter, err error) bool {
	switch {
	case errors.Is(err, store.ErrUnknown):
		problem(w, http.StatusNotFound, "confirmation_unknown", "There is no such confirmation; use the token of a confirmation.request.")
	case errors.Is(err, store.ErrUsed):
		problem(w, http.StatusConflict, "confirmation_used", "This confirmation has been answered already; each can be answered once.")
	case errors.Is(err, store.ErrExpired):
		problem(w, http.StatusGone, "confirmation_expired", "This confirmation has expired; the tool must be called again.")
	default:
		return false
	}
	return true
}

// readApproved reads the one thing that a body says.
func readApproved(body io.Reader) (approved, ok bool) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	var b confirmationBody
	if d.Decode(&b) != nil || b.Approved == nil {
		return false, false
	}
	_, err := d.Token()
	return *b.Approved, errors.Is(err, io.EOF)
}
