package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/store"
)

// Endpoint is a receiver.
type Endpoint struct {
	// Name is unique; the store allows a to z, digits and hyphens.
	Name string
	// URL may hold a secret, so it is never logged or part of an error.
	URL string
	// Secrets all sign each event, so that the receiver may know either during a change.
	Secrets []Secret
	// Events are the types sent; nil means all.
	Events []string
	// Private allows loopback and private addresses. Link-local addresses, where clouds serve credentials, are never
	// allowed.
	Private bool
	// Timeout bounds an attempt. Zero means 10 s; it must be below the store's lease of a minute.
	Timeout time.Duration
}

func (e *Endpoint) wants(kind string) bool { return e.Events == nil || slices.Contains(e.Events, kind) }

type result struct {
	ok   bool
	gone bool // the receiver answered 410: no more events
	// why is the error without the address, one of a few texts.
	why string
	// after is the receiver's Retry-After; zero if missing.
	after time.Duration
}

type poster struct {
	Endpoint
	out *bounded.Outbound
}

func newPoster(e Endpoint) *poster {
	if e.Timeout == 0 {
		e.Timeout = 10 * time.Second
	}
	return &poster{Endpoint: e, out: bounded.NewOutbound(e.Private, workers, bounded.Limits{Service: "the webhook " + e.Name})}
}

func (p *poster) close() { p.out.Close() }

// post makes one attempt. Only the answer's status and Retry-After matter.
func (p *poster) post(ctx context.Context, id string, body []byte) result {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return result{why: "invalid URL"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "voicegw")
	Sign(req.Header, id, time.Now(), body, p.Secrets...)
	resp, err := p.out.Do(req)
	if err != nil {
		return result{why: reason(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	// Reading a short answer to its end allows the connection to be reused.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	switch {
	case resp.StatusCode/100 == 2:
		return result{ok: true}
	case resp.StatusCode == http.StatusGone:
		return result{gone: true, why: "status 410"}
	case resp.StatusCode/100 == 3:
		return result{why: "redirects are not followed"}
	}
	return result{why: fmt.Sprintf("status %d", resp.StatusCode), after: bounded.RetryAfter(resp.Header, time.Now())}
}

// reason describes a failure without the address, which may hold a secret and which the errors of net/http include.
func reason(err error) string {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, bounded.ErrAddress):
		return bounded.ErrAddress.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &dns):
		return "unknown host"
	case errors.As(err, &op):
		return "cannot connect: " + op.Err.Error()
	}
	return "the request failed: " + err.Error()
}

// The headers of a request ("Webhook headers").
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp" // of the attempt, in Unix seconds
	HeaderSignature = "webhook-signature" // "v1," and base64 for each secret, separated by spaces
)

// secretPrefix begins a secret for HMAC-SHA256 ("Signature scheme").
const secretPrefix = "whsec_"

// The lengths of a secret, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

// Secret signs bodies for one receiver. Formatting redacts it.
type Secret struct{ key []byte }

// ParseSecret parses a configured secret: whsec_ and 24 to 64 bytes in base64. The error completes a sentence and
// doesn't contain the secret.
func ParseSecret(text string) (Secret, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("must begin with %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return Secret{}, fmt.Errorf("is not base64 after %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("has %d bytes; it needs %d to %d", len(key), minSecret, maxSecret)
	}
	return Secret{key}, nil
}

func (s Secret) String() string { return "[redacted]" }

// GoString redacts the secret.
func (s Secret) GoString() string { return s.String() }

func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of an attempt, with one signature for each secret.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.sign(id, timestamp, body)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(all, " "))
}

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
