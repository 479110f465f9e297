package gateway

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"voicegw/store"
)

// originAllowed says whether a request may come from where it says: from no page at all,
// from a page of this host, or from one that Options.Origins names. It is the rule that
// holds for WebSockets.
func (s *Server) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Header.Get("Sec-Fetch-Site") != "cross-site"
	}
	if sameOrigin(origin, r.Host) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	for _, pattern := range s.opts.Origins {
		subject := u.Host
		if strings.Contains(pattern, "://") {
			subject = u.Scheme + "://" + u.Host
		}
		if ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(subject)); err == nil && ok {
			return true
		}
	}
	return false
}

// pageOf is the origin of the page that a request comes from, in its one form; empty for
// what is no page.
func pageOf(r *http.Request) string {
	origin, _ := store.CleanOrigin(r.Header.Get("Origin")) // one that is none was refused before
	return origin
}

// isJSON says whether a Content-Type is JSON's. Asking for it makes browsers ask first
// before a page of another origin may send a body.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
