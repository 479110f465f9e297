// Package operator calls a running gateway's endpoints for operators, and shows their answers.
package operator

import (
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
)

// askTime bounds one request to a gateway.
const askTime = 15 * time.Second

// Client calls a running gateway. It may be used concurrently.
type Client struct {
	// Base is the gateway's address, without a trailing slash. Key is sent as a bearer token; if it
	// is empty, none is sent.
	Base, Key string
	// Trust says how the gateway's certificate is checked; nil means by the system's authorities.
	Trust *tls.Config

	http *http.Client
}

// New returns a Client of the gateway at a base URL; see BaseURL. trust may be nil.
func New(base, key string, trust *tls.Config) *Client {
	t := bounded.NewTransport()
	t.TLSClientConfig = trust
	// Redirects are not followed: the key is for this address and no other.
	c := bounded.Unfollowed(bounded.Wrap(t, limits))
	c.Timeout = askTime
	return &Client{Base: base, Key: key, Trust: trust, http: c}
}

// BaseURL returns the base URL of a gateway: from the given address, which may be a voice endpoint,
// or else from the scheme and the address that the gateway listens on.
func BaseURL(given, scheme, listen string) (string, error) {
	if given == "" {
		host, port, err := net.SplitHostPort(listen)
		switch {
		case err != nil:
			return "", fmt.Errorf("listen: %w", err)
		case port == "0":
			return "", errors.New("listen has port 0, which says nothing of where the gateway is; name it with --url")
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
	// Status is the HTTP status, Code the gateway's name of the reason.
	Status  int
	Code    string
	message string
	// problems are those of a document, as JSON; empty without any.
	problems json.RawMessage
}

// Error returns the gateway's words and, if they are about a key, what to do.
func (e *Refused) Error() string {
	text := fmt.Sprintf("the gateway at %s answers %d: %s", e.base, e.Status, textutil.Quote(e.message))
	if e.Status == http.StatusUnauthorized {
		text += " Give it with VOICEGW_API_KEY, or with the gateway's own configuration (--config). One that the gateway has made itself is read from its data folder (--data-dir), on its own machine and by its own user."
	}
	return text
}

// Ask sends one request and decodes the answer, which is JSON, into out; a nil out discards it. The
// error may be a *Refused.
func (o *Client) Ask(ctx context.Context, method, path string, out any) error {
	return o.exchange(ctx, request{method: method, path: path}, out, nil)
}

// exchange sends a request and decodes the answer, as Ask does. headers gets those of the answer; it may be
// nil.
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
			return fmt.Errorf("the gateway at %s has no endpoint %s: it is older than this program, or has no store", o.Base, q.path)
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

// fetch sends one request and returns the answer's status, headers and body, whatever they say.
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
	// It was only read.
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
		return fmt.Errorf("no gateway answers at %s; start one with voicegw serve, or say with --url where it is", o.Base)
	}
	return fmt.Errorf("the gateway at %s cannot be asked: %w; say with --url where it is", o.Base, err)
}

func (o *Client) stranger(status int) error {
	return fmt.Errorf("what answers at %s is no voicegw gateway (status %d); say with --url where it is", o.Base, status)
}

// Close ends the connections.
func (o *Client) Close() { o.http.CloseIdleConnections() }

// limits bound what a gateway may answer.
var limits = bounded.Limits{
	Service: "the gateway", Format: bounded.JSON, Bytes: 16 << 20, Idle: askTime, Whole: askTime,
}
