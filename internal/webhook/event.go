package webhook

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"voicegw/store"
)

// Version is the version of the bodies. It changes when a field's meaning changes or a field is removed; adding fields
// doesn't change it.
const Version = 1

// MaxBody bounds a body in bytes: the specification recommends less than 20 kB.
const MaxBody = 16 << 10

// The types of events.
const (
	SessionStarted = "session.started"
	SessionEnded   = "session.ended"
	JobEnded       = "job.ended"
)

// Types returns all types of events.
func Types() []string { return []string{SessionStarted, SessionEnded, JobEnded} }

// Session is the data of SessionStarted and SessionEnded, without the transcript.
type Session struct {
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id,omitempty"`
	// User is the user's name, or empty. Principal is the credential that admitted the client, such as "key:k3v9x2ab".
	User      string `json:"user,omitempty"`
	Principal string `json:"principal,omitempty"`
	// Entry is open, ticket, key or jwt, and in SessionEnded also takeover.
	Entry     string `json:"entry"`
	Agent     string `json:"agent,omitempty"`
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	StartedAt string `json:"started_at"`
	// End is set in SessionEnded only.
	*End
}

// End describes an ended session. Its counters are those of the gateway that ended the session: after a move, only the
// usage records have the whole.
type End struct {
	EndedAt    string `json:"ended_at"`
	DurationMS int64  `json:"duration_ms"`
	// Reason is listed in docs/protocol.md; CloseCode is the WebSocket close code.
	Reason    string `json:"reason"`
	CloseCode int    `json:"close_code"`
	Turns     int    `json:"turns"`
	// CostUSDMicros is in millionths of a dollar; Unpriced counts usage reports without a price.
	CostUSDMicros int64 `json:"cost_usd_micros"`
	Unpriced      int64 `json:"unpriced"`
}

// Job is the data of JobEnded, without payload and result; GET /v1/jobs/{id} has the result.
type Job struct {
	JobID          string `json:"job_id"`
	Tool           string `json:"tool"`
	Name           string `json:"name"`
	State          string `json:"state"`
	User           string `json:"user,omitempty"`
	ConversationID string `json:"conversation_id"`
	SessionID      string `json:"session_id"`
	CallID         string `json:"call_id,omitempty"`
	Attempts       int    `json:"attempts"`
	CreatedAt      string `json:"created_at"`
	EndedAt        string `json:"ended_at"`
}

const timeForm = "2006-01-02T15:04:05.000Z"

// Time formats a time for bodies.
func Time(at time.Time) string { return at.UTC().Format(timeForm) }

// NewEvent returns a session's event, or an error if its body exceeds MaxBody.
func NewEvent(kind string, at time.Time, data Session) (store.Webhook, error) {
	return newEvent(kind, at, data.SessionID, data)
}

// NewJobEvent returns a job's event, like NewEvent.
func NewJobEvent(at time.Time, data Job) (store.Webhook, error) {
	return newEvent(JobEnded, at, data.JobID, data)
}

func newEvent(kind string, at time.Time, of string, data any) (store.Webhook, error) {
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Version   int    `json:"version"`
		Timestamp string `json:"timestamp"`
		Data      any    `json:"data"`
	}{kind, Version, Time(at), data})
	if err != nil {
		return store.Webhook{}, fmt.Errorf("webhook: %w", err)
	}
	if len(body) > MaxBody {
		return store.Webhook{}, fmt.Errorf("webhook: body of %d bytes exceeds the maximum of %d", len(body), MaxBody)
	}
	return store.Webhook{ID: idOf(kind, of), Type: kind, At: at, Body: body}, nil
}

// idOf returns an event's ID, without dots as the specification requires.
func idOf(kind, of string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + of))
	return "evt_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
