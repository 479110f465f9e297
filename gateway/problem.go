package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// problem is an error answer, which handlers return.
type problem struct {
	status        int
	code, message string
	param, kind   string         // the wrong field and the type, for Chat Completions
	more          map[string]any // further fields of the error
	wait          time.Duration  // until a retry may succeed; zero if none can
	// challenge is appended to WWW-Authenticate (RFC 6750, section 3); empty for a status without one.
	challenge string
	reason    string // for the log, if it differs from code
}

// handler serves a request, or returns the problem.
type handler func(w http.ResponseWriter, r *http.Request) *problem

func refusal(status int, code, message string) *problem {
	return &problem{status: status, code: code, message: message}
}

// wrongField is a problem with a field of Chat Completions.
func wrongField(param, code, message string) *problem {
	return &problem{status: http.StatusBadRequest, code: code, message: message, param: param}
}

func badField(param, message string) *problem {
	return wrongField(param, "invalid_value", param+" "+message)
}

func invalid(message string) *problem {
	return refusal(http.StatusBadRequest, "invalid_message", message)
}

// after returns the problem with the time until a retry may succeed.
func (p *problem) after(wait time.Duration) *problem {
	p.wait = wait
	return p
}

// until returns the problem with its end.
func (p *problem) until(end time.Time) *problem {
	p.more = map[string]any{"until": end.UTC().Format(timeForm)}
	return p
}

// storeFailed logs a failure of the store.
func (s *Server) storeFailed(what string, err error) *problem {
	s.opts.Logger.Error(what, "error", err)
	return refusal(http.StatusServiceUnavailable, "store_unavailable",
		"The gateway's store is unavailable; try again in a moment.").after(5 * time.Second)
}

// answer writes the problem in the format of the request's API.
func (p *problem) answer(w http.ResponseWriter, r *http.Request) {
	if p.wait > 0 {
		retryAfter(w, p.wait)
	}
	if r.URL.Path == mcpPath {
		writeRPC(w, p)
		return
	}
	body := map[string]any{"code": p.code, "message": p.message}
	if path := r.URL.Path; isRealtime(path) || path == completionsPath || path == modelsPath || strings.HasPrefix(path, modelsPath+"/") {
		body = openaiError(p)
	}
	maps.Copy(body, p.more)
	answer(w, p.status, map[string]any{"error": body})
}

func openaiError(p *problem) map[string]any {
	kind := "invalid_request_error"
	switch {
	case p.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	body := map[string]any{"message": p.message, "type": cmp.Or(p.kind, kind), "param": nil, "code": p.code}
	if p.param != "" {
		body["param"] = p.param
	}
	return body
}

func retryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.Seconds())))
}

// answer writes a response. It returns nil, for handlers.
func answer(w http.ResponseWriter, status int, body any) *problem {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(body)
	return nil
}

// done answers without a body.
func done(w http.ResponseWriter, status int) *problem {
	w.WriteHeader(status)
	return nil
}

func clip(s string) string { return textutil.Shorten(s, 80) }
