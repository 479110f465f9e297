package google

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

// scopes permit reading and creating events, and reading free times.
var scopes = []string{
	"https://www.googleapis.com/auth/calendar.events",
	"https://www.googleapis.com/auth/calendar.freebusy",
}

// tokenURL is the default of a credentials file.
const tokenURL = "https://oauth2.googleapis.com/token" //nolint:gosec // an address, not a secret

// ErrCredentials is wrapped by the errors of a credentials file.
var ErrCredentials = errors.New("google: the credentials cannot be used")

// file is the JSON of a service account's key or of an authorized user, in the form of Google's console and gcloud.
type file struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	TokenURI     string `json:"token_uri"`
}

// tokens gets access tokens and keeps a valid one. It may be used concurrently.
type tokens struct {
	// Fixed after newTokens.
	transport http.RoundTripper
	source    func(ctx context.Context) oauth2.TokenSource
	fetching  chan struct{}                // a lock around requests for a token; it is never closed
	held      atomic.Pointer[oauth2.Token] // nil without one
}

// newTokens parses credentials. Its errors contain no secret.
func newTokens(credentials []byte, subject string, transport http.RoundTripper) (*tokens, error) {
	var f file
	if err := json.Unmarshal(credentials, &f); err != nil {
		return nil, fmt.Errorf("%w: they are not JSON", ErrCredentials)
	}
	endpoint := cmp.Or(f.TokenURI, tokenURL)
	if !secure(endpoint) {
		return nil, fmt.Errorf("%w: their token_uri is not an https URL", ErrCredentials)
	}
	t := &tokens{transport: transport, fetching: make(chan struct{}, 1)}
	switch {
	case f.Type == "service_account":
		if f.ClientEmail == "" || !isKey(f.PrivateKey) {
			return nil, fmt.Errorf("%w: a service account needs a client_email and a private_key", ErrCredentials)
		}
		c := &jwt.Config{
			Email: f.ClientEmail, PrivateKey: []byte(f.PrivateKey), PrivateKeyID: f.PrivateKeyID,
			Subject: subject, Scopes: scopes, TokenURL: endpoint,
		}
		t.source = c.TokenSource
	case f.Type != "authorized_user":
		return nil, fmt.Errorf("%w: their type is %.40q; it must be service_account or authorized_user", ErrCredentials, f.Type)
	case f.ClientID == "" || f.ClientSecret == "" || f.RefreshToken == "":
		return nil, fmt.Errorf("%w: an authorized user needs a client_id, a client_secret and a refresh_token", ErrCredentials)
	case subject != "":
		return nil, fmt.Errorf("%w: only a service account can act for a subject", ErrCredentials)
	default:
		c := &oauth2.Config{
			ClientID: f.ClientID, ClientSecret: f.ClientSecret,
			Endpoint: oauth2.Endpoint{TokenURL: endpoint, AuthStyle: oauth2.AuthStyleInParams},
		}
		t.source = func(ctx context.Context) oauth2.TokenSource {
			return c.TokenSource(ctx, &oauth2.Token{RefreshToken: f.RefreshToken})
		}
	}
	return t, nil
}

// secure reports whether an address may get secrets.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

func isKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	_, err8 := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, err1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err8 == nil || err1 == nil
}

func (t *tokens) token(ctx context.Context) (string, error) {
	select {
	case t.fetching <- struct{}{}:
		defer func() { <-t.fetching }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if held := t.held.Load(); held.Valid() {
		return held.AccessToken, nil
	}
	// The library sends without a context, so the client adds it.
	via := &during{ctx: ctx, next: t.transport}
	got, err := t.source(context.WithValue(ctx, oauth2.HTTPClient, bounded.Unfollowed(via))).Token()
	if err != nil {
		return "", tokenError(ctx, err, via.failed)
	}
	t.held.Store(got)
	return got.AccessToken, nil
}

func (t *tokens) refused(access string) {
	if held := t.held.Load(); held != nil && held.AccessToken == access {
		t.held.CompareAndSwap(held, nil)
	}
}

// tokenLimits bound the answer of the token endpoint.
var tokenLimits = bounded.Limits{
	Service: "Google's sign-in", Format: bounded.JSON, Bytes: 256 << 10, Elements: 1000, Idle: 30 * time.Second, Whole: 30 * time.Second,
}

// during sends a request with the context of a call.
type during struct {
	ctx    context.Context //nolint:containedctx // for the length of one call
	next   http.RoundTripper
	failed error
}

func (d *during) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r.WithContext(d.ctx))
	if d.failed = err; err == nil {
		resp.Body = &noted{resp.Body, d}
	}
	return resp, err
}

// noted records the error of a body, because the library keeps only its text.
type noted struct {
	io.ReadCloser
	call *during
}

func (n *noted) Read(p []byte) (int, error) {
	count, err := n.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.call.failed = err
	}
	return count, err
}

var errNoToken = errors.New("google: the token endpoint's answer is invalid")

// tokenError converts an error of the library; failed is the request's own error, or nil. Of the endpoint's text it
// keeps only the code (RFC 6749 section 5.2), because the text may contain the request.
func tokenError(ctx context.Context, err, failed error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if over, ok := bounded.As(cmp.Or(failed, err)); ok {
		if over.Bound == bounded.BoundFailure {
			return tokenRefused(over.Status, over)
		}
		return server.TooMuch(over)
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return calendar.Errorf(calendar.Transient, cmp.Or(failed, errNoToken), "Google cannot be reached.")
	}
	var body struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(refused.Body, &body)
	cause := fmt.Errorf("no token: the endpoint answers %s %.60q", refused.Response.Status, body.Error)
	return tokenRefused(refused.Response.StatusCode, cause)
}

func tokenRefused(code int, cause error) error {
	switch {
	case code < 400: // not followed, because the request holds secrets
		return calendar.Errorf(calendar.Permanent, cause, "The address of Google's sign-in has changed.")
	case code == http.StatusTooManyRequests:
		return calendar.Errorf(calendar.RateLimit, cause, "Google gets too many requests.")
	case code >= 500:
		return calendar.Errorf(calendar.Transient, cause, "Google does not work at the moment.")
	default:
		return calendar.Errorf(calendar.Auth, cause, "Google does not accept the calendar's credentials.")
	}
}
