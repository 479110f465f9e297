package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"voicegw/registry"
	"voicegw/store"
)

// confirmationBody is what POST /v1/confirmations takes. The token stands in the body because
// it permits the answer, and addresses are logged by proxies and kept by programs.
type confirmationBody struct {
	Token    string `json:"token"`
	Approved *bool  `json:"approved"`
}

// confirmationAnswer is what it answers with.
type confirmationAnswer struct {
	// Outcome is approved or denied.
	Outcome   string `json:"outcome"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// Told says that the conversation still runs here: its model is told the outcome.
	// Otherwise Envelope is the result of an approved action.
	Told     bool               `json:"told"`
	Envelope *registry.Envelope `json:"envelope,omitempty"`
}

// maxConfirmationBody bounds the body, in bytes.
const maxConfirmationBody = 4 << 10

// confirm records the answer to a confirmation, for the backend of a client.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request) {
	token, approved, ok := readConfirmation(http.MaxBytesReader(w, r.Body, maxConfirmationBody))
	if !ok {
		// The body is not repeated in the error: it may hold a token.
		problem(w, http.StatusBadRequest, "invalid_message", `The body must be {"token": "cf_…", "approved": true} or false, and nothing else.`)
		return
	}
	done, err := s.opts.Sessions.Confirm(r.Context(), token, approved, mine(r.Context()))
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

// confirmationRefused answers a request whose confirmation cannot be answered, and reports
// whether err was of that kind.
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

// readConfirmation checks the content of a body.
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

// confirmationMoved answers at the old address with the token in it, and does not repeat it.
func confirmationMoved(w http.ResponseWriter, _ *http.Request) {
	problem(w, http.StatusGone, "gone", `A confirmation's token belongs into the body: POST /v1/confirmations with {"token": "cf_…", "approved": true} or false.`)
}
