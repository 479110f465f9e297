package openaiwire

import (
	"bytes"
	"encoding/json"
	"time"
)

// SecretRequest is the body of POST /v1/realtime/client_secrets (developers.openai.com/api/reference, client_secrets, read
// 2026-11-20).
type SecretRequest struct {
	// Life is that of the secret: 10 s to 2 h, by default 10 min. Sessions outlive it.
	Life time.Duration
	// Model is that of the session; empty without one.
	Model string
	// Given has the members of the session; nil without one.
	Given map[string]json.RawMessage

	session json.RawMessage
}

// SecretAnswer is the answer to a SecretRequest.
type SecretAnswer struct {
	Value     string   `json:"value"`
	ExpiresAt int64    `json:"expires_at"` // Unix time in seconds
	Session   *Session `json:"session"`
}

// ReadSecretRequest reads a body, which may be empty. own is for a member that OpenAI does not have; empty for none.
func ReadSecretRequest(body []byte, own string, read Reader) (*SecretRequest, *Error) {
	q, seconds, anchor := &SecretRequest{}, 600, ""
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	} else if !json.Valid(body) {
		return nil, NotJSON(body)
	}
	err := Fields{
		"expires_after": Fields{"anchor": Word(&anchor, "created_at"), "seconds": Integer(&seconds, 10, 7200)}.Read,
		"session":       Raw(&q.session),
		own:             read,
	}.Read(body, "")
	q.Life = time.Duration(seconds) * time.Second
	if err == nil && len(q.session) > 0 && (json.Unmarshal(q.session, &q.Given) != nil || q.Given == nil) {
		err = WrongType("session", "an object", KindOf(q.session))
	}
	if model, has := q.Given["model"]; err == nil && has {
		err = Text(&q.Model)(model, "session.model")
	}
	return q, err
}

// Apply returns s, whose model is the request's, with the settings of the request, and those settings without the model,
// because a connection may name its own; nil without any.
func (q *SecretRequest) Apply(s *Session) (*Session, json.RawMessage, *Error) {
	if q.Given == nil {
		return s, nil, nil
	}
	s, err := s.Update(q.session)
	if err != nil {
		return nil, nil, err
	}
	delete(q.Given, "model")
	kept, _ := json.Marshal(q.Given) // decoded JSON can be encoded
	return s, kept, nil
}
