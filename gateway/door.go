package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"voicegw/internal/origin"
)

// visitor says what kind of page has sent a request, if any.
type visitor int

// The visitors.
const (
	// aProgram is not a page: it has no Origin, and no browser names a page behind it.
	aProgram visitor = iota
	// ownPage is a page that this server has served.
	ownPage
	// namedPage is a page of an origin in Options.Origins.
	namedPage
	// embedder is a page of any other origin that shows or follows an address without
	// reading the answer: an image, a link. Browsers send no Origin in that case.
	embedder
	// stranger is a page that nobody has allowed, or one that cannot be identified.
	stranger
)

// routes are all routes of a server. There is no other way to add one, so tests can ask each.
type routes struct {
	mux      http.ServeMux
	patterns []string // in the form of http.ServeMux
}

func (rs *routes) add(pattern string, h http.HandlerFunc) {
	rs.patterns = append(rs.patterns, pattern)
	rs.mux.HandleFunc(pattern, h)
}

// ServeHTTP answers one request. Every request, to every route, passes enter first.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	p := pace(w, r)
	defer p.renew()
	if s.enter(p, r) {
		s.routes.mux.ServeHTTP(p, r)
	}
	if s.opts.Observe != nil && !p.taken {
		s.opts.Observe(r.Pattern, cmp.Or(p.status, http.StatusOK), time.Since(began))
	}
}

// enter lets a request in, or answers it.
//
// The Host must be one of this server's. Otherwise a page of evil.test, whose DNS suddenly says
// 127.0.0.1, would have the same origin as the gateway (DNS rebinding). Neither the page nor
// health is an exception: a probe comes by an IP address or by localhost.
//
// Then the page, if there is one, must be the server's own or a named one.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) bool {
	host, err := origin.ParseHost(r.Host)
	if err != nil {
		s.turnAway(w, r, http.StatusMisdirectedRequest, "host", "The Host of this request "+err.Error()+".")
		return false
	}
	if !s.live.Load().Hosts.Allow(host) {
		s.turnAway(w, r, http.StatusMisdirectedRequest, "host", "This gateway does not answer to the name "+clip(host.String())+"; its operator can allow it (hosts).")
		return false
	}
	if who := s.visitor(r, host); who == stranger || who == embedder && !embeddable(r.URL.Path) {
		s.turnAway(w, r, http.StatusForbidden, "origin", "Pages of this origin may not use the gateway; its operator can allow it (origins).")
		return false
	}
	return true
}

// turnAway answers a request that is not let in. Browsers hide the answer to a WebSocket handshake,
// so a page asks for the same path over HTTP to learn why it was refused; any page may read that
// reason, which holds nothing that the page does not know.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	if r.URL.Path == voicePath {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	s.seldom.Info("request refused at the door", code, "addr", s.clientAddr(r).String(), "host", clip(r.Host), "origin", clip(r.Header.Get("Origin")))
	refuse(w, shapeOf(r.URL.Path), status, code, message)
}

// embeddable says whether any page may link to a path or embed it: the console and images.
// Such a page cannot read the answer, and the request changes nothing.
func embeddable(path string) bool {
	return !strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1/images/")
}

// visitor decides which page is behind a request to host. It is the only rule, for WebSockets
// as for everything else. Pages can forge neither Origin nor Sec-Fetch-Site; a program can, and
// gains nothing by it.
func (s *Server) visitor(r *http.Request, host origin.Host) visitor {
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	if len(origins) > 1 || len(sites) > 1 {
		return stranger
	}
	if len(origins) == 0 {
		if len(sites) == 0 || sites[0] == "none" {
			return aProgram
		}
		if sites[0] == "same-origin" {
			return ownPage
		}
		return embedder
	}
	from, err := origin.Parse(origins[0])
	switch {
	case err != nil:
		return stranger
	case s.isOwn(from, r, host):
		return ownPage
	case slices.ContainsFunc(s.live.Load().Origins, func(p origin.Pattern) bool { return p.Match(from) }):
		return namedPage
	default:
		return stranger
	}
}

// isOwn says whether an origin is this server's, as the request reached it: the same scheme,
// host and port.
//
// If TLS or a trusted proxy tells the scheme, a page of the other scheme is foreign: anybody in
// the page's network may have written it. If nobody tells it and the operator has named the
// host, a proxy that ends TLS may be in front: then https counts as well as http.
func (s *Server) isOwn(from origin.Origin, r *http.Request, host origin.Host) bool {
	scheme, told := s.scheme(r)
	schemes := []string{scheme}
	if !told && s.live.Load().Hosts.Named(host) {
		schemes = []string{"http", "https"}
	}
	for _, scheme := range schemes {
		at := host
		if at.Port == 0 {
			at.Port = origin.DefaultPort(scheme)
		}
		if from == (origin.Origin{Scheme: scheme, Host: at}) {
			return true
		}
	}
	return false
}

// originAllowed says whether a page that sends its origin may read the answer.
func (s *Server) originAllowed(r *http.Request) bool {
	host, err := origin.ParseHost(r.Host)
	if err != nil {
		return false
	}
	who := s.visitor(r, host)
	return who == ownPage || who == namedPage
}

// pageOf is the origin of the page behind a request, in its normal form; empty if it is not a
// page. enter has checked it before.
func pageOf(r *http.Request) string {
	from, err := origin.Parse(r.Header.Get("Origin"))
	if err != nil {
		return ""
	}
	return from.String()
}
