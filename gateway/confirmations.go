package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"voicegw/registry"
	"voicegw/store"
)

type confirmationAnswer struct {
	Outcome   string `json:"outcome"`
	SessionID string `json:"session_id"`
	Tool      string `json:"tool"`
	// Told means that the model of a conversation here receives the outcome. Otherwise Envelope is the result.
	Told     bool               `json:"told"`
	Envelope *registry.Envelope `json:"envelope,omitempty"`
}

const maxConfirmationBody = 4 << 10

// confirm gets the token, a secret, in the body, because proxies log URLs.
func (s operatorAPI) confirm(w http.ResponseWriter, r *http.Request) *problem {
	var body chatConfirmation
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfirmationBody))
	d.DisallowUnknownFields()
	err := d.Decode(&body)
	if _, more := d.Token(); err != nil || body.Token == "" || body.Approved == nil || !errors.Is(more, io.EOF) {
		// The error doesn't repeat the body, which may contain a token.
		return invalid(`The body must be {"token": "cf_…", "approved": true} or false, and nothing else.`)
	}
	done, err := s.opts.Sessions.Confirm(r.Context(), body.Token, *body.Approved, mine(r.Context()))
	if err != nil {
		return s.confirmationRefused("recording an approval decision failed", err)
	}
	s.opts.Logger.Info("confirmation answered by the API", "session_id", done.SessionID, "tool", done.Tool,
		"outcome", string(done.Outcome))
	return answer(w, http.StatusOK, confirmationAnswer{
		Outcome: string(done.Outcome), SessionID: done.SessionID, Tool: done.Tool, Told: done.Told, Envelope: done.Envelope,
	})
}

func (s *Server) confirmationRefused(what string, err error) *problem {
	switch {
	case errors.Is(err, store.ErrUnknown):
		return refusal(http.StatusNotFound, "confirmation_unknown",
			"Unknown confirmation; use the token of a confirmation.request.")
	case errors.Is(err, store.ErrUsed):
		return refusal(http.StatusConflict, "confirmation_used", "This confirmation was already answered.")
	case errors.Is(err, store.ErrExpired):
		return refusal(http.StatusGone, "confirmation_expired",
			"This confirmation has expired. The tool must be called again.")
	}
	return s.storeFailed(what, err)
}

func confirmationMoved(http.ResponseWriter, *http.Request) *problem {
	return refusal(http.StatusGone, "gone", `Send the token in the body: POST /v1/confirmations with {"token": "cf_…", `+
		`"approved": true} or false.`)
}
