package completions

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/internal/bounded"
)

// problem is a provider's error. Compatible servers write it in several ways: as OpenAI does, as
// a string, in a list, with a number or a word as code.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"param"`
}

// readProblem reads an error's JSON: the value of "error", or the object around it. ok is false
// if there is no error in it.
func readProblem(raw []byte) (p problem, ok bool) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return p, false
		}
		raw = list[0]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return problem{Message: text}, text != ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return p, false
	}
	if inner := fields["error"]; len(inner) > 0 && string(inner) != "null" {
		return readProblem(inner)
	}
	word := func(names ...string) string {
		for _, name := range names {
			var s string
			var n json.Number
			if json.Unmarshal(fields[name], &s) == nil && s != "" {
				return s
			}
			if json.Unmarshal(fields[name], &n) == nil && n != "" {
				return n.String()
			}
		}
		return ""
	}
	p = problem{Message: word("message", "detail", "msg"), Type: word("type", "status"), Code: word("code"), Param: word("param")}
	return p, p != problem{}
}

// normal rewrites a refusal's body in OpenAI's form, which the library understands.
func (p problem) normal() []byte {
	out, _ := json.Marshal(map[string]problem{"error": p}) // four strings: it cannot fail
	return out
}

// The words, in lower case, by which providers report what an HTTP status does not
// (developers.openai.com/api/docs/guides/error-codes, learn.microsoft.com Azure OpenAI content
// filtering, openrouter.ai/docs/api-reference/errors and llama.cpp's server, read 2026-11-23).
var (
	quotaWords  = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded", "insufficient_credits"}
	rateWords   = []string{"rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests", "tokens", "requests"}
	filterWords = []string{"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked"}
	authWords   = []string{"invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthenticated"}
	longWords   = []string{"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large"}
	badWords    = []string{"invalid_request_error", "invalid_argument", "model_not_found", "not_found_error"}
)

// tooLong matches the messages of servers that have no code for a conversation that is too long.
var tooLong = regexp.MustCompile(`(?i)maximum context length|context (length|window|size)|prompt is too long|too many (input )?tokens|input token count .*exceeds`)

// kind classifies a provider's error; status is its HTTP status, or 0 for an error in a stream.
func (p problem) kind(status int) chat.ErrorKind {
	says := func(words []string) bool {
		return slices.Contains(words, strings.ToLower(p.Code)) || slices.Contains(words, strings.ToLower(p.Type))
	}
	if n, err := strconv.Atoi(p.Code); err == nil && status < 300 && n >= 400 && n < 600 {
		status = n // the code of an error in a stream may be an HTTP status
	}
	client := status < 300 || status >= 400 && status < 500
	switch {
	case says(quotaWords) || status == http.StatusPaymentRequired:
		return chat.KindQuota
	case says(longWords) || status == http.StatusRequestEntityTooLarge || client && status != http.StatusTooManyRequests && tooLong.MatchString(p.Message):
		return chat.KindTooLong
	case says(filterWords):
		return chat.KindFiltered
	case status >= 300:
		return kindOfStatus(status)
	case says(rateWords):
		return chat.KindRateLimit
	case says(authWords):
		return chat.KindAuth
	case says(badWords):
		return chat.KindRequest
	default:
		return chat.KindUnavailable
	}
}

// kindOfStatus classifies a response with an unsuccessful HTTP status.
func kindOfStatus(status int) chat.ErrorKind {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return chat.KindAuth
	case status == http.StatusTooManyRequests:
		return chat.KindRateLimit
	case status == http.StatusRequestEntityTooLarge:
		return chat.KindTooLong
	case status == http.StatusPaymentRequired:
		return chat.KindQuota
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusConflict && status != http.StatusTooEarly:
		return chat.KindRequest
	default:
		return chat.KindUnavailable
	}
}

// retryAfter returns how long the provider asks the client to wait, or 0 for more than an hour,
// which no person would wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := bounded.RetryAfter(h, now); d <= time.Hour {
		return d
	}
	return 0
}
