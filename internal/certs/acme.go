package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// LetsEncrypt is the directory of the authority that is used if ACME names none.
const LetsEncrypt = acme.LetsEncryptURL

// protocolACME is the protocol of the handshakes by which an authority checks that this server
// answers for a host (TLS-ALPN-01, RFC 8737).
const protocolACME = acme.ALPNProto

// ACME orders certificates for hosts. Their names must lead to this server's port 443.
type ACME struct {
	// Hosts are names such as voice.example.com; no patterns, no addresses.
	Hosts []string
	// Email is where the authority writes about problems; it may be empty.
	Email string
	// Directory is the URL of the authority's directory; empty means LetsEncrypt.
	Directory string
	// Cache is the folder for keys and certificates. It is made if it is missing, for its owner only.
	Cache string
	// Client asks the authority; nil means one that trusts the system's roots.
	Client *http.Client
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// check returns what is wrong with the settings.
func (a *ACME) check() (problems Problems) {
	for _, host := range a.Hosts {
		_, err := netip.ParseAddr(host)
		if err == nil || len(host) > 253 || !hostName.MatchString(normal(host)) {
			problems = append(problems, Problem{"acme.hosts", fmt.Sprintf("%q is no name that a certificate can be ordered for; write a whole name such as voice.example.com, without a scheme, a port or a *.", host)})
		}
	}
	return problems
}

// manager is what all orders share.
type manager struct {
	certs *autocert.Manager

	mu      sync.Mutex        // guards the following fields
	ends    context.Context   //nolint:containedctx // that of Run, for requests of autocert
	reasons map[string]string // by host: why the authority has refused it
}

// newManager returns the manager for settings, and an order for each host.
func newManager(a ACME, logger *slog.Logger) (*manager, map[string]*order) {
	m := &manager{ends: context.Background(), reasons: map[string]string{}}
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

// answer answers a handshake of the authority.
func (m *manager) answer(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.certs.GetCertificate(hello) //nolint:wrapcheck // crypto/tls wraps it
}

// ending ends the requests to the authority with a context: autocert gives them one of its own.
func (m *manager) ending(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends = ctx
}

type ending struct {
	manager *manager
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e ending) RoundTrip(r *http.Request) (*http.Response, error) {
	e.manager.mu.Lock()
	ends := e.manager.ends
	e.manager.mu.Unlock()
	ctx, cancel := context.WithCancelCause(r.Context())
	context.AfterFunc(ends, func() { cancel(context.Cause(ends)) })
	resp, err := e.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands for next
	}
	return resp, e.manager.listen(resp)
}

// How long an order waits after a failure: at first, and at most. Let's Encrypt takes five failures an
// hour for a host.
const (
	retryFirst = time.Minute
	retryMost  = time.Hour
	renewLook  = time.Hour // how often the certificate is asked for, which shows whether it was renewed
)

// order is the certificate for one host. Only run orders one, never a handshake: otherwise strangers
// could use up what the authority allows.
type order struct {
	// Fixed.
	host    string
	manager *manager
	logger  *slog.Logger

	first chan struct{} // closed by run when a certificate is there

	mu  sync.Mutex // guards the following fields
	now *tls.Certificate
	why error // of the last failure
}

// run orders the certificate, and follows its renewals, which autocert makes by itself.
func (o *order) run(ctx context.Context) {
	retry := retryFirst
	for {
		wait := renewLook
		switch c, err := o.manager.certs.GetCertificate(hello(o.host)); {
		case ctx.Err() != nil:
			return
		case err != nil:
			if why := o.manager.reason(o.host); why != "" {
				err = fmt.Errorf("%w: the authority says: %s", err, why)
			}
			o.logger.Error("a certificate could not be ordered", "host", o.host, "error", err, "again_in", retry)
			o.set(nil, err)
			wait, retry = retry, min(2*retry, retryMost)
		default:
			retry = retryFirst
			o.manager.reason(o.host) // of a challenge before the one that has succeeded
			o.set(c, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// hello is that of a client that takes ECDSA, as every current one does: a second kind of key would be
// a second order for each host.
func hello(host string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedVersions: []uint16{tls.VersionTLS13},
	}
}

// set keeps what came of the last request; a certificate stays until there is another.
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
		o.logger.Info("a certificate is there", "host", o.host, "expires", c.Leaf.NotAfter.UTC(), "issuer", strings.TrimSpace(c.Leaf.Issuer.String()))
	}
	o.now = c
}

// wait returns the certificate, once it is there.
func (o *order) wait(ctx context.Context) (*tls.Certificate, error) {
	select {
	case <-o.first:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return nil, errors.Join(fmt.Errorf("certs: the certificate for %s is not there yet", o.host), o.why)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now, nil
}

// expires returns when the certificate ends; zero if it is not there.
func (o *order) expires() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == nil {
		return time.Time{}
	}
	return o.now.Leaf.NotAfter
}
