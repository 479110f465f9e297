package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard decides who may use the endpoints for operators.
//
// With a key, whoever shows it, from anywhere. Without one, programs on this machine
// alone. Two kinds of request look as if they came from such a program and do not: those
// that a browser on this machine makes for a foreign page (CSRF, and DNS rebinding, which
// gives the page's own name a loopback address), and those that a proxy on this machine
// passes on. The first are known by their Host, Origin and Sec-Fetch-Site, which a page
// cannot forge, the second by the headers that proxies add. A proxy that adds none cannot
// be told from a program: docs/configuration.md says that there must be a key behind one.
type guard struct {
	// Fixed after newGuard. The key is kept and compared as its hash, so that
	// comparing takes the same time whatever is shown, of whatever length.
	hasKey bool
	key    [sha256.Size]byte
}

func newGuard(key string) guard {
	return guard{hasKey: key != "", key: sha256.Sum256([]byte(key))}
}

// refusal is why a request may not use an endpoint for operators.
type refusal struct {
	status  int
	code    string
	message string
}

// forwarded are the headers by which a proxy tells whom it speaks for.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

// setKey ends every refusal that a key would have prevented.
const setKey = " Set api_key in the gateway's configuration and show it as \"Authorization: Bearer …\"."

// check returns nil for a request that may pass. No refusal tells of the key.
func (g guard) check(r *http.Request) *refusal {
	if g.hasKey {
		return g.checkKey(r)
	}
	return checkLocal(r)
}

// local says whether a request may pass without a key.
func (g guard) local(r *http.Request) bool { return !g.hasKey && checkLocal(r) == nil }

// checkLocal returns nil for a request of a program on this machine, or of the gateway's
// own page in a browser on it.
func checkLocal(r *http.Request) *refusal {
	deny := func(message string) *refusal {
		return &refusal{http.StatusForbidden, "operators_only", message + setKey}
	}
	if !directAddr(r).IsLoopback() {
		return deny("This endpoint answers to programs on the gateway's own machine.")
	}
	for _, name := range forwarded {
		if len(r.Header.Values(name)) > 0 {
			return deny("This request came through a proxy (it has the header " + name + ").")
		}
	}
	if !loopbackHost(r.Host) {
		return deny("This endpoint must be asked as localhost or by a loopback address, not as " + clip(r.Host) + ".")
	}
	for _, origin := range r.Header.Values("Origin") {
		if !sameOrigin(origin, r.Host) {
			return deny("A page of another origin may not use this endpoint.")
		}
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "none" && site != "same-origin" {
			return deny("A page of another origin may not use this endpoint.")
		}
	}
	return nil
}

func (g guard) checkKey(r *http.Request) *refusal {
	shown := r.Header.Values("Authorization")
	if len(shown) == 1 {
		scheme, key, _ := strings.Cut(shown[0], " ")
		sum := sha256.Sum256([]byte(strings.TrimLeft(key, " ")))
		if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.key[:]) == 1 {
			return nil
		}
		return &refusal{http.StatusUnauthorized, "wrong_key", "The key in Authorization is not the gateway's api_key."}
	}
	return &refusal{http.StatusUnauthorized, "key_missing", "Show the gateway's api_key as \"Authorization: Bearer …\"."}
}

// loopbackHost says whether the Host of a request names this machine and nothing else:
// a name that is not "localhost" may be anybody's.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// sameOrigin says whether an Origin is that of the page that this very host serves.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}

// forOperators lets only those pass to next that guard lets in. Every endpoint that
// shows or changes what concerns other users goes through it.
func (s *Server) forOperators(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		no := s.guard.check(r)
		if no == nil {
			next(w, r)
			return
		}
		s.seldom.Info("operator's request refused", no.code, "addr", s.clientAddr(r).String(), "path", clip(r.URL.Path))
		if no.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`)
		}
		problem(w, no.status, no.code, no.message)
	}
}
