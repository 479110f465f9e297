package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"voicegw/internal/bounded"
)

// LetsEncrypt is the default ACME directory.
const LetsEncrypt = acme.LetsEncryptURL

// protocolACME marks handshakes by which an authority validates a host (TLS-ALPN-01, RFC 8737).
const protocolACME = acme.ALPNProto

// ACME configures certificate orders. The hosts' names must resolve to this server's port 443.
type ACME struct {
	// Hosts are names such as voice.example.com; no wildcards or addresses.
	Hosts []string
	// Email is the contact for the authority; it may be empty.
	Email string
	// Directory is the authority's directory URL; empty means LetsEncrypt.
	Directory string
	// Cache is the folder for keys and certificates, created with access for its owner only.
	Cache string
	// Client sends the requests; nil means one that trusts the system's roots.
	Client *http.Client
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (a *ACME) check() (problems Problems) {
	for _, host := range a.Hosts {
		_, err := netip.ParseAddr(host)
		if err == nil || len(host) > 253 || !hostName.MatchString(normal(host)) {
			problems = append(problems,
				Problem{"acme.hosts",
					fmt.Sprintf("cannot order a certificate for %q; write a full host name such as voice.example.com, "+
						"without a scheme, port or *.",
						host)})
		}
	}
	return problems
}

type manager struct {
	certs *autocert.Manager
	// ends ends requests with Run: autocert uses a context of its own.
	ends context.Context //nolint:containedctx // of the manager's life
	end  context.CancelCauseFunc

	mu      sync.Mutex        // guards the next field
	reasons map[string]string // by host: the authority's refusal
}

func newManager(a ACME, logger *slog.Logger) (*manager, map[string]*order) {
	m := &manager{reasons: map[string]string{}}
	m.ends, m.end = context.WithCancelCause(context.Background())
	asks := bounded.Client(a.Client, bounded.Limits{Service: "the certificate authority", Bytes: 1 << 20, Whole: 30 * time.Second})
	asks.Transport = ending{m, asks.Transport}
	hosts := make([]string, len(a.Hosts))
	orders := map[string]*order{}
	for i, host := range a.Hosts {
		hosts[i] = normal(host)
		orders[hosts[i]] = &order{host: hosts[i], manager: m, logger: logger, first: make(chan struct{})}
	}
	m.certs = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(a.Cache), HostPolicy: autocert.HostWhitelist(hosts...), Email: a.Email,
		Client: &acme.Client{DirectoryURL: cmp.Or(a.Directory, LetsEncrypt), HTTPClient: asks, UserAgent: "voicegw"},
	}
	return m, orders
}

// ending makes requests end with the manager.
type ending struct {
	manager *manager
	next    http.RoundTripper
}

func (e ending) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	context.AfterFunc(e.manager.ends, func() { cancel(context.Cause(e.manager.ends)) })
	resp, err := e.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err //nolint:wrapcheck // as next does
	}
	return resp, e.manager.listen(resp)
}

// The pauses of an order after failures: the first and the longest. Let's Encrypt allows five failures an hour for each
// host.
const (
	retryFirst = time.Minute
	retryMost  = time.Hour
	renewLook  = time.Hour // the interval for detecting renewals
)

// order obtains the certificate of one host. Only run orders, never a handshake: otherwise strangers could exhaust the
// authority's rate limits.
type order struct {
	// Immutable.
	host    string
	manager *manager
	logger  *slog.Logger

	first chan struct{} // closed by run when a certificate is available

	mu  sync.Mutex // guards the following fields
	now *tls.Certificate
	why error // the last failure
}

// run orders the certificate and detects renewals, which autocert makes itself.
func (o *order) run(ctx context.Context) {
	retry := retryFirst
	for {
		wait := renewLook
		switch c, err := o.manager.certs.GetCertificate(hello(o.host)); {
		case ctx.Err() != nil:
			return
		case err != nil:
			if why := o.manager.reason(o.host); why != "" {
				err = fmt.Errorf("%w: the certificate authority reports: %s", err, why)
			}
			o.logger.Error("cannot order certificate", "host", o.host, "error", err, "again_in", retry)
			o.set(nil, err)
			wait, retry = retry, min(2*retry, retryMost)
		default:
			retry = retryFirst
			o.manager.reason(o.host) // discards the reason of an earlier failed challenge
			o.set(c, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// hello imitates a client with ECDSA, which every current client supports: a second key type would need a second order
// for each host.
func hello(host string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SupportedCurves:  []tls.CurveID{tls.CurveP256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedVersions: []uint16{tls.VersionTLS13},
	}
}

// set records the result of the last request; an existing certificate stays until it is replaced.
func (o *order) set(c *tls.Certificate, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = err
	if c == nil {
		return
	}
	if o.now == nil {
		close(o.first)
	}
	if o.now == nil || !o.now.Leaf.NotAfter.Equal(c.Leaf.NotAfter) {
		o.logger.Info("certificate available", "host", o.host, "expires", c.Leaf.NotAfter.UTC(), "issuer",
			strings.TrimSpace(c.Leaf.Issuer.String()))
	}
	o.now = c
}

func (o *order) wait(ctx context.Context) (*tls.Certificate, error) {
	select {
	case <-o.first:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return nil, errors.Join(fmt.Errorf("certs: no certificate for %s yet", o.host), o.why)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now, nil
}

func (o *order) expires() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == nil {
		return time.Time{}
	}
	return o.now.Leaf.NotAfter
}

// answered is the part of the authority's answer that may refuse a name: an order (RFC 8555, section 7.1.3), or an
// authorization (section 7.1.4) whose challenges have their own errors.
type answered struct {
	Identifier  identifier   `json:"identifier"`
	Identifiers []identifier `json:"identifiers"`
	Error       *refusal     `json:"error"`
	Challenges  []struct {
		Type  string   `json:"type"`
		Error *refusal `json:"error"`
	} `json:"challenges"`
}

type identifier struct {
	Value string `json:"value"`
}

// refusal is a problem document (RFC 7807, section 3.1).
type refusal struct {
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

func (r refusal) String() string {
	return strings.TrimPrefix(r.Type, "urn:ietf:params:acme:error:") + ": " + r.Detail
}

// reasonIn returns the host that an answer refuses and the reason; both empty without a refusal.
func reasonIn(body []byte) (host, why string) {
	var a answered
	if json.Unmarshal(body, &a) != nil {
		return "", ""
	}
	host = a.Identifier.Value
	if host == "" && len(a.Identifiers) > 0 {
		host = a.Identifiers[0].Value
	}
	var reasons []string
	if a.Error != nil {
		reasons = append(reasons, a.Error.String())
	}
	for _, c := range a.Challenges {
		if c.Error != nil {
			reasons = append(reasons, c.Type+": "+c.Error.String())
		}
	}
	if host == "" || len(reasons) == 0 {
		return "", ""
	}
	return normal(host), strings.Join(reasons, "; ")
}

// listen records why the authority refuses a host. autocert discards the reason: it tries the next challenge, and its
// error is only that no challenge is left.
func (m *manager) listen(resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	body, err := io.ReadAll(resp.Body) // already bounded
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err //nolint:wrapcheck // an error of the transport
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if host, why := reasonIn(body); why != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reasons[host] = why
	}
	return nil
}

// reason returns the authority's refusal since the last call, or "".
func (m *manager) reason(host string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := m.reasons[host]
	delete(m.reasons, host)
	return why
}
