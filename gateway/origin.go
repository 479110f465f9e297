package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"voicegw/internal/origin"
)

type visitor int

const (
	// aProgram isn't a page: it sends no Origin, and no browser reports a page.
	aProgram visitor = iota
	ownPage
	namedPage
	// embedder is a page of another origin that embeds or links to a URL. Browsers then send no Origin.
	embedder
	// stranger is any other page, including unidentified ones.
	stranger
)

// routes are a server's routes. add is the only way to add one, so that tests can check each.
type routes struct {
	mux      http.ServeMux
	patterns []string // in the form of http.ServeMux
	access   map[string]access
}

func (rs *routes) add(a access, h http.HandlerFunc) {
	rs.patterns = append(rs.patterns, a.pattern)
	if rs.access == nil {
		rs.access = map[string]access{}
	}
	rs.access[a.pattern] = a
	rs.mux.HandleFunc(a.pattern, h)
}

// ServeHTTP answers a request. Every request passes enter first.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	p := pace(w, r)
	defer p.renew()
	if no := s.enter(p, r); no != nil {
		no.answer(p, r)
	} else {
		s.routes.mux.ServeHTTP(p, r)
	}
	if s.opts.Observe != nil && !p.taken {
		s.opts.Observe(r.Pattern, cmp.Or(p.status, http.StatusOK), time.Since(began))
	}
}

// enter admits a request. The Host must be one of this server's: otherwise a page of evil.test, whose
// DNS changes to 127.0.0.1, would have the gateway's origin (DNS rebinding).
func (s *Server) enter(w http.ResponseWriter, r *http.Request) *problem {
	host, err := origin.ParseHost(r.Host)
	if err != nil {
		return s.turnAway(w, r, http.StatusMisdirectedRequest, "host", "The Host of this request "+err.Error()+".")
	}
	if !s.live.Load().Hosts.Allow(host) {
		return s.turnAway(w, r, http.StatusMisdirectedRequest, "host", "The host "+clip(host.String())+
			" is not allowed; the operator can allow it with the setting hosts.")
	}
	if who := s.visitor(r, host); who == stranger || who == embedder && !embeddable(r.URL.Path) {
		return s.turnAway(w, r, http.StatusForbidden, "origin",
			"Pages of this origin may not use the gateway; the operator can allow it with the setting origins.")
	}
	return nil
}

// turnAway: browsers hide the response to a WebSocket handshake, so pages request the same path over HTTP for the
// reason.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, status int, code, message string) *problem {
	if r.URL.Path == voicePath {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	s.seldom.Info("request refused", code, "addr", s.clientAddr(r).String(), "host", clip(r.Host), "origin", clip(r.Header.Get("Origin")))
	return refusal(status, code, message)
}

// embeddable reports whether any page may link to a path: it cannot read the response, and the request changes nothing.
func embeddable(path string) bool {
	return !strings.HasPrefix(path, "/v1/") && !isRealtime(path) && path != mcpPath || strings.HasPrefix(path, "/v1/images/")
}

// visitor identifies the page behind a request. Pages cannot forge Origin and Sec-Fetch-Site; a program gains nothing.
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

// isOwn reports whether an origin is this server's. With TLS or a trusted proxy, a page with another scheme is foreign:
// an attacker in the network may have written it. Otherwise a proxy may terminate TLS for a configured host, so http
// and https count.
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

func (s *Server) originAllowed(r *http.Request) bool {
	host, err := origin.ParseHost(r.Host)
	if err != nil {
		return false
	}
	who := s.visitor(r, host)
	return who == ownPage || who == namedPage
}

// pageOf returns the normalised origin of the page behind a request, which enter has checked; empty without a page.
func pageOf(r *http.Request) string {
	from, err := origin.Parse(r.Header.Get("Origin"))
	if err != nil {
		return ""
	}
	return from.String()
}
