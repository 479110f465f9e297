// Package operator calls the operator endpoints of a running gateway and formats their responses.
package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"voicegw/internal/bounded"
	"voicegw/internal/textutil"
	"voicegw/protocol"
)

// askTime bounds one request to a gateway.
const askTime = 15 * time.Second

// Client calls a running gateway. It is safe for concurrent use.
type Client struct {
	// Base is the gateway's address, without a trailing slash. Key is sent as a bearer token if not empty.
	Base, Key string
	// Trust verifies the gateway's certificate; nil means the system's authorities.
	Trust *tls.Config

	http *http.Client
}

// New returns a client of the gateway at a base URL; see BaseURL. trust may be nil.
func New(base, key string, trust *tls.Config) *Client {
	t := bounded.NewTransport()
	t.TLSClientConfig = trust
	// Redirects are not followed: the key is for this address only.
	c := bounded.Unfollowed(bounded.Wrap(t, limits))
	c.Timeout = askTime
	return &Client{Base: base, Key: key, Trust: trust, http: c}
}

// BaseURL returns a gateway's base URL: from the given address, which may be a voice endpoint, otherwise from the
// scheme and address it listens on.
func BaseURL(given, scheme, listen string) (string, error) {
	if given == "" {
		host, port, err := net.SplitHostPort(listen)
		switch {
		case err != nil:
			return "", fmt.Errorf("listen: %w", err)
		case port == "0":
			return "", errors.New("listen has port 0, so the gateway's port is unknown; give its address with --url")
		}
		switch host {
		case "", "0.0.0.0":
			host = "127.0.0.1"
		case "::":
			host = "::1"
		}
		return scheme + "://" + net.JoinHostPort(host, port), nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--url must be a URL such as http://127.0.0.1:8080, without a user, a query or a fragment")
	}
	switch u.Scheme {
	case "http", "https":
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	default:
		return "", errors.New("--url must begin with http:// or https://")
	}
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1/voice"), nil
}

// Refused is a gateway's refusal of a request.
type Refused struct {
	base string
	// Status is the HTTP status, Code the gateway's error code.
	Status  int
	Code    string
	message string
	// problems are those of a document, as JSON; empty without any.
	problems json.RawMessage
}

// Error returns the gateway's message and, for a key, the fix.
func (e *Refused) Error() string {
	text := fmt.Sprintf("the gateway at %s answers %d: %s", e.base, e.Status, textutil.Quote(e.message))
	if e.Status == http.StatusUnauthorized {
		text += " Give it with VOICEGW_API_KEY, or with the gateway's own configuration (--config). A key that the gateway " +
			"created itself is read from its data folder (--data-dir), on its machine and by its user."
	}
	return text
}

// Ask sends a request and decodes the JSON response into out; nil discards it. The error may be a *Refused.
func (o *Client) Ask(ctx context.Context, method, path string, out any) error {
	return o.exchange(ctx, request{method: method, path: path}, out, nil)
}

func get[T any](ctx context.Context, o *Client, path string) (answer T, err error) {
	err = o.Ask(ctx, http.MethodGet, path, &answer)
	return answer, err
}

// exchange is Ask for any request. headers, if set, gets the response's headers.
func (o *Client) exchange(ctx context.Context, q request, out any, headers func(http.Header)) error {
	status, got, answer, err := o.fetch(ctx, q)
	if err != nil {
		return err
	}
	if headers != nil {
		headers(got)
	}
	if status >= http.StatusMultipleChoices {
		var problem struct {
			Error struct {
				Code, Message string
				Problems      json.RawMessage
			}
		}
		if json.Unmarshal(answer, &problem) != nil || problem.Error.Code == "" {
			return o.stranger(status)
		}
		if problem.Error.Code == "not_found" {
			return fmt.Errorf("the gateway at %s has no endpoint %s: it is older than this program or has no store", o.Base, q.path)
		}
		return &Refused{o.Base, status, problem.Error.Code, problem.Error.Message, problem.Error.Problems}
	}
	if out == nil {
		return nil
	}
	if json.Unmarshal(answer, out) != nil {
		return o.stranger(status)
	}
	return nil
}

// fetch sends a request and returns the response's status, headers and body.
func (o *Client) fetch(ctx context.Context, q request) (status int, header http.Header, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, q.method, o.Base+q.path, q.body)
	if err != nil {
		return 0, nil, nil, err
	}
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, q.header)
	if o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+o.Key)
	}
	resp, err := o.http.Do(req)
	if err != nil {
		return 0, nil, nil, o.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, nil, o.unreachable(err)
	}
	return resp.StatusCode, resp.Header, answer, nil
}

func (o *Client) unreachable(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
		err = ue.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no gateway answers at %s; start one with voicegw serve, or give its address with --url", o.Base)
	}
	return fmt.Errorf("the gateway at %s is unreachable: %w; check --url", o.Base, err)
}

func (o *Client) stranger(status int) error {
	return fmt.Errorf("the server at %s is not a voicegw gateway (status %d); check --url", o.Base, status)
}

// Close closes idle connections.
func (o *Client) Close() { o.http.CloseIdleConnections() }

// limits bound a gateway's response.
var limits = bounded.Limits{
	Service: "the gateway", Format: bounded.JSON, Bytes: 16 << 20, Idle: askTime, Whole: askTime,
}

// ConsoleLink returns the console's address with a code in the fragment, which a browser does not send.
func ConsoleLink(base, code string) string {
	if code == "" {
		return base + "/"
	}
	return base + "/#code=" + code
}

// ConsoleLink creates a one-time link to the console.
func (o *Client) ConsoleLink(ctx context.Context) (string, error) {
	var made struct {
		Code string `json:"code"`
	}
	if err := o.Ask(ctx, http.MethodPost, "/v1/console/codes", &made); err != nil {
		return "", err
	}
	return ConsoleLink(o.Base, made.Code), nil
}

// Health is the response of /healthz or /readyz.
type Health struct {
	Status   string `json:"status"`
	Message  string `json:"message"`  // why it is not ready
	Sessions int    `json:"sessions"` // zero if ready
}

// Health asks whether a gateway is alive or, with ready, accepts new sessions. The error has the reason if not.
func (o *Client) Health(ctx context.Context, ready bool) (h Health, err error) {
	if !ready {
		return h, o.Ask(ctx, http.MethodGet, "/healthz", &h)
	}
	status, _, body, err := o.fetch(ctx, request{method: http.MethodGet, path: "/readyz"})
	switch {
	case err != nil:
		return h, err
	case json.Unmarshal(body, &h) != nil || h.Status == "":
		return h, o.stranger(status)
	case status != http.StatusOK:
		return h, fmt.Errorf("the gateway at %s is not ready (%s): %s", o.Base, textutil.Quote(h.Status), textutil.Quote(h.Message))
	}
	return h, nil
}

// Drain makes the gateway give up its sessions and accept no new ones. Zero means its own drain_timeout.
func (o *Client) Drain(ctx context.Context, timeout time.Duration) (p protocol.DrainProgress, err error) {
	body, err := json.Marshal(map[string]int64{"timeout_ms": timeout.Milliseconds()})
	if err == nil {
		err = o.exchange(ctx, request{method: http.MethodPost, path: "/v1/drain", body: bytes.NewReader(body)}, &p, nil)
	}
	return p, err
}

// DrainProgress returns the drain's progress.
func (o *Client) DrainProgress(ctx context.Context) (protocol.DrainProgress, error) {
	return get[protocol.DrainProgress](ctx, o, "/v1/drain")
}
