package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
