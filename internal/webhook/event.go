package webhook

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Version is that of the bodies. It changes when a field changes its meaning or goes; fields may be added
// without that.
const Version = 1

// MaxBody bounds a body, in bytes: the specification recommends less than 20 kB.
const MaxBody = 16 << 10

// The types of events.
const (
	SessionStarted = "session.started"
	SessionEnded   = "session.ended"
	JobEnded       = "job.ended"
)

// Types returns all types of events.
func Types() []string { return []string{SessionStarted, SessionEnded, JobEnded} }

// Event is something that has happened.
type Event struct {
	// ID is the same for every attempt, every receiver and every gateway that tells of the same event.
	ID string
	// Type is one of Types.
	Type string
	// At is when it happened.
	At time.Time
	// Body is what is sent, byte for byte.
	Body []byte
}

// Session is the data of SessionStarted and SessionEnded: what is known of a voice session. It has none of its words.
type Session struct {
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id,omitempty"`
	// User is the user's name; empty for a user without one. Principal is what let the client in, such
	// as "key:k3v9x2ab".
	User      string `json:"user,omitempty"`
	Principal string `json:"principal,omitempty"`
	// Entry is how the client came: open, ticket, key or jwt, and in SessionEnded also takeover.
	Entry     string `json:"entry"`
	Agent     string `json:"agent,omitempty"`
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	StartedAt string `json:"started_at"`
	// End is set in SessionEnded alone.
	*End
}

// End is what is known of a session that is over. What it counts is that of the gateway that has ended
// the session: a session that has moved was counted in parts, which the usage has together.
type End struct {
	EndedAt    string `json:"ended_at"`
	DurationMS int64  `json:"duration_ms"`
	// Reason is one of docs/protocol.md, CloseCode the code with which the client was closed.
	Reason    string `json:"reason"`
	CloseCode int    `json:"close_code"`
	Turns     int    `json:"turns"`
	// CostUSDMicros is money in millionths of a dollar; Unpriced counts the reports of usage that have no
	// price.
	CostUSDMicros int64 `json:"cost_usd_micros"`
	Unpriced      int64 `json:"unpriced"`
}

// Job is the data of JobEnded: what is known of long work that has ended. It has neither its payload nor its
// result, which GET /v1/jobs/{id} has.
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

// timeForm is RFC 3339 in UTC with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z"

// Time writes a time as it stands in bodies.
func Time(at time.Time) string { return at.UTC().Format(timeForm) }

// NewEvent makes the event of a session. The error says that the body would be larger than MaxBody.
func NewEvent(kind string, at time.Time, data Session) (Event, error) {
	return newEvent(kind, at, data.SessionID, data)
}

// NewJobEvent makes the event of a job, as NewEvent does.
func NewJobEvent(at time.Time, data Job) (Event, error) {
	return newEvent(JobEnded, at, data.JobID, data)
}

// newEvent makes the event of that kind of a session or a job.
func newEvent(kind string, at time.Time, of string, data any) (Event, error) {
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Version   int    `json:"version"`
		Timestamp string `json:"timestamp"`
		Data      any    `json:"data"`
	}{kind, Version, Time(at), data})
	if err != nil {
		return Event{}, fmt.Errorf("webhook: %w", err)
	}
	if len(body) > MaxBody {
		return Event{}, fmt.Errorf("webhook: a body of %d bytes; at most %d are sent", len(body), MaxBody)
	}
	return Event{ID: idOf(kind, of), Type: kind, At: at, Body: body}, nil
}

// idOf returns the ID of the event of that kind of a session or a job. It has no dot, as the specification wants.
func idOf(kind, of string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + of))
	return "evt_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
