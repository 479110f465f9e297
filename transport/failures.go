package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Kind is the cause of a model's failure, found by close code, HTTP status or error code. See [Kind.Failure].
type Kind uint8

// The kinds.
const (
	// KindIgnore: harmless, such as a cancel that came too late.
	KindIgnore Kind = iota + 1
	// KindRetry: the connection broke or could not be opened.
	KindRetry
	// KindExpired: the connection reached its maximum age.
	KindExpired
	// KindRefused: the provider refused one request; the connection stays open.
	KindRefused
	// KindAuth: the provider refused the credential.
	KindAuth
	// KindQuota: the account has no quota or credit left.
	KindQuota
	// KindInvalid: the provider does not accept the setup, the model's name or a message.
	KindInvalid
	// KindClosed: this side closed the connection.
	KindClosed
	// KindRateLimit: too many requests or tokens in a short time.
	KindRateLimit
	// KindServer: the provider reports a fault of its own.
	KindServer
	// KindTimeout: the provider did not answer in time. The error names the missing event.
	KindTimeout
	// KindFiltered: the provider's content filter stopped the answer.
	KindFiltered
	// KindTooLong: the conversation or the answer is longer than the model allows.
	KindTooLong
	// KindUnreadable: the provider's answer cannot be read or exceeds a limit.
	KindUnreadable
)

// Alert is the alert that counts a failure. Its text is the alert's name.
type Alert string

// The alerts.
const (
	AlertNone Alert = ""
	AlertDown Alert = "VoicegwProviderDown"
	AlertKey  Alert = "VoicegwProviderRefusesKey"
)

// Failure is the gateway's treatment of a [Kind].
type Failure struct {
	// Name is the kind in logs and metrics.
	Name string
	// Retry: another attempt may succeed. Elsewhere: another provider may do better (providers.fallback).
	Retry, Elsewhere bool
	// Code is the protocol's error code for a failed answer, Words is the user's message, and Later means that the
	// user may try again. Without a Code the client gets no error.
	Code, Words string
	Later       bool
	Level       slog.Level
	Alert       Alert
}

// failures covers every wire, in voice and text. A test compares it with docs/providers.md.
var failures = [...]Failure{
	KindIgnore: {Name: "ignore", Level: slog.LevelDebug},
	KindRetry: {"retry", true, true, "provider_unavailable",
		"The model cannot be reached at the moment; try again soon.", true, slog.LevelWarn, AlertDown},
	KindExpired: {"expired", true, true, "provider_unavailable", "The model's connection has expired; try again.", true,
		slog.LevelInfo, AlertNone},
	KindRefused: {"refused", false, false, "provider_error", "The model refused this request.", false, slog.LevelWarn, AlertNone},
	KindAuth: {"auth", false, true, "provider_auth",
		"The model's provider does not accept this gateway's key; its operator must look into it.", false, slog.LevelError, AlertKey},
	KindQuota: {"quota", false, true, "provider_quota",
		"This gateway's quota at the model's provider is used up; its operator must look into it.", false, slog.LevelError, AlertKey},
	KindInvalid: {"invalid", false, true, "provider_error",
		"The model does not accept this gateway's request; its operator must look into it.", false, slog.LevelError, AlertDown},
	KindClosed: {Name: "closed", Level: slog.LevelDebug},
	KindRateLimit: {"rate_limit", true, true,
		"provider_busy", "The model accepts no more requests at the moment; try again soon.", true, slog.LevelWarn, AlertDown},
	KindServer: {"server", true, true, "provider_unavailable",
		"The model's provider has a problem at the moment; try again soon.", true, slog.LevelWarn, AlertDown},
	KindTimeout: {"timeout", true, true, "provider_unavailable", "The model did not answer in time; try again soon.",
		true, slog.LevelWarn, AlertDown},
	KindFiltered: {"filtered", false, false,
		"content_filter", "The filter of the model's provider blocks this conversation; rephrase it.", false, slog.LevelInfo, AlertNone},
	KindTooLong: {"too_long", false, false,
		"too_long", "The conversation or the answer is longer than the model allows; begin a new one, or ask for less.",
		false, slog.LevelWarn, AlertNone},
	KindUnreadable: {"unreadable", false, true,
		"provider_answer", "The model's answer cannot be read; its operator must look into it.", false, slog.LevelError, AlertDown},
}

// Kinds returns every kind in order.
func Kinds() []Kind {
	var all []Kind
	for k := range failures {
		if failures[k].Name != "" {
			all = append(all, Kind(k))
		}
	}
	return all
}

// Failure returns the row of the table. An unknown kind gets the row of KindRefused.
func (k Kind) Failure() Failure {
	if int(k) < len(failures) && failures[k].Name != "" {
		return failures[k]
	}
	return failures[KindRefused]
}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(failures) && failures[k].Name != "" {
		return failures[k].Name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Retryable reports whether another attempt with the same provider may succeed.
func (k Kind) Retryable() bool { return int(k) < len(failures) && failures[k].Retry }

// codes are the error codes and types that providers send, in lower case: OpenAI's, and the names of
// google.rpc.Code. The same names have the same meaning on every wire: in error events, failed
// answers, refused handshakes and close reasons.
//
// Sources: developers.openai.com/api/docs/guides/error-codes, learn.microsoft.com (Azure OpenAI
// content filtering), openrouter.ai/docs/api-reference/errors, llama.cpp's server, read 2026-11-23;
// ai.google.dev/gemini-api/docs/troubleshooting and github.com/googleapis/googleapis
// google/rpc/code.proto, read 2026-11-29; recordings and reports up to 2026-11-20.
var codes = map[string]Kind{
	"insufficient_quota": KindQuota, "billing_hard_limit_reached": KindQuota, "billing_not_active": KindQuota,
	"quota_exceeded": KindQuota, "insufficient_credits": KindQuota, "credit_balance_exhausted": KindQuota,

	"rate_limit_exceeded": KindRateLimit, "rate_limit_error": KindRateLimit, "resource_exhausted": KindRateLimit,
	"too_many_requests": KindRateLimit, "tokens": KindRateLimit, "requests": KindRateLimit,

	"server_error": KindServer, "internal_error": KindServer, "internal_server_error": KindServer, "internal": KindServer,
	"api_error":        KindServer,
	"overloaded_error": KindServer, "server_overloaded": KindServer, "engine_overloaded": KindServer,
	"service_unavailable": KindServer, "unavailable": KindServer,
	"model_load_error": KindServer, "session_limit_reached": KindRateLimit, // LocalAI; speech-to-speech (read 2026-11-30)
	"inference_rate_limit_exceeded": KindRateLimit, "deadline_exceeded": KindServer, "unknown": KindServer,
	"aborted": KindServer, "data_loss": KindServer,

	"content_filter": KindFiltered, "content_policy_violation": KindFiltered, "responsibleaipolicyviolation": KindFiltered,
	"moderation_blocked": KindFiltered,

	"context_length_exceeded": KindTooLong, "exceed_context_size_error": KindTooLong, "context_window_exceeded": KindTooLong,
	"request_too_large": KindTooLong, "max_output_tokens": KindTooLong,

	"invalid_api_key": KindAuth, "expired_api_key": KindAuth, "missing_api_key": KindAuth, "account_deactivated": KindAuth,
	"authentication_error": KindAuth, "permission_error": KindAuth, "permission_denied": KindAuth, "unauthenticated": KindAuth,

	"session_expired": KindExpired,

	"beta_api_shape_disabled": KindInvalid, "invalid_intent": KindInvalid, "invalid_model": KindInvalid, "model_not_found": KindInvalid,
	"invalid_request_error": KindInvalid, "invalid_argument": KindInvalid, "not_found_error": KindInvalid,
	"failed_precondition": KindInvalid,
	"not_found":           KindInvalid, "unimplemented": KindInvalid, "out_of_range": KindInvalid,
}

// KindOfCode returns the kind of the first known code, in any case; zero if none is known.
func KindOfCode(names ...string) Kind {
	for _, name := range names {
		if k := codes[strings.ToLower(name)]; k != 0 {
			return k
		}
	}
	return 0
}

// KindOfStatus returns the kind of an HTTP error status.
func KindOfStatus(status int) Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return KindAuth
	case http.StatusPaymentRequired:
		return KindQuota
	case http.StatusTooManyRequests:
		return KindRateLimit
	case http.StatusRequestEntityTooLarge:
		return KindTooLong
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return KindRetry
	}
	if status >= 500 {
		return KindServer
	}
	return KindInvalid
}

// KindOfContext returns the kind of a context's end: a deadline may be the provider's fault, a cancellation is not.
func KindOfContext(err error) Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return KindTimeout
	}
	return KindClosed
}

// KindOfClose returns the kind of a WebSocket close code (RFC 6455 section 7.4.1, IANA registry), KindRetry if unknown.
// ready: the provider had accepted the setup. Adapters handle codes of their own.
func KindOfClose(code int, ready bool) Kind {
	switch code {
	case 1002, 1003, 1007, 1009, 1010:
		return KindInvalid
	case 1008:
		// After the setup, servers and proxies close with it for many reasons that pass.
		if !ready {
			return KindInvalid
		}
	}
	return KindRetry
}

// Error is the type of every error that an adapter returns.
type Error struct {
	Provider string
	// Op is "dial", "setup", "history", "send", "recv", "response", or the refused command ("truncate").
	Op   string
	Kind Kind
	// Code is the provider's code: a close code, an HTTP status or an error code. It is safe for logs and metrics.
	Code string
	// RetryAfter is the wait that the provider asks for; zero without one.
	RetryAfter time.Duration
	// Err is the cause. It contains no credential; its text may come from the provider and is for the log only.
	Err error
}

// Error returns all fields, for the log.
func (e *Error) Error() string {
	s := e.Provider + ": " + e.Op + ": " + e.Kind.String()
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first [*Error] in err's tree, or zero.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

// ModelEnd is the announced end of a model.
type ModelEnd struct {
	// Date is the first day without the model, such as 2027-01-20.
	Date string `json:"date"`
	// Successor is the recommended replacement.
	Successor string `json:"successor"`
	// Source is the announcement and the date of reading.
	Source string `json:"source"`
}

// Past reports whether the day of the end has begun.
func (e ModelEnd) Past(now time.Time) bool { return now.UTC().Format(time.DateOnly) >= e.Date }

// The sources of the rows.
const (
	openaiPage = "developers.openai.com/api/docs/deprecations, read 2026-11-23"
	googlePage = "ai.google.dev/gemini-api/docs/deprecations, read 2026-11-23"
)

// modelEnds are announced ends. A name includes its dated releases; one with another end comes before its family.
var modelEnds = []struct {
	names string // patterns, separated by blanks
	ModelEnd
}{
	{`gpt-realtime gpt-4o-realtime-preview`, ModelEnd{"2027-01-20", "gpt-realtime-2.1", openaiPage}},
	{`gpt-realtime-mini gpt-4o-mini-realtime-preview`, ModelEnd{"2027-01-20", "gpt-realtime-2.1-mini", openaiPage}},
	{`whisper-1 gpt-4o-transcribe gpt-4o-mini-transcribe gpt-4o-transcribe-diarize`,
		ModelEnd{"2027-02-26", "gpt-live-transcribe", openaiPage}},
	{`gpt-image-1`, ModelEnd{"2026-10-23", "gpt-image-2.6-flare", openaiPage}},
	{`gpt-image-1-mini gpt-image-1\.5 chatgpt-image-latest`, ModelEnd{"2026-12-01", "gpt-image-2.6-flare", openaiPage}},
	{`gpt-5`, ModelEnd{"2026-12-11", "gpt-6.1-sol", openaiPage}},
	{`gpt-5-mini`, ModelEnd{"2026-12-11", "gpt-6.1-terra", openaiPage}},
	{`gpt-4o gpt-4o-mini gpt-4\.1 gpt-4\.1-mini`, ModelEnd{"2027-01-14", "gpt-6-luna", openaiPage}},

	{`gemini-2\.0-flash-live-001 gemini-live-2\.5-flash-preview`, ModelEnd{"2025-12-09", "gemini-3.8-live", googlePage}},
	{`gemini-2\.5-pro`, ModelEnd{"2026-12-01", "gemini-3.8-flash", googlePage}},
	{`gemini-2\.5-flash`, ModelEnd{"2026-12-01", "gemini-3.5-flash-lite", googlePage}},
	{`gemini-2\.5-flash-image`, ModelEnd{"2026-10-02", "gemini-3.1-flash-image", googlePage}},
	{`imagen-[34]\.0-[a-z]+-[0-9]+ imagen-[34]\.0-[a-z]+-generate-[0-9]+`, ModelEnd{"2026-06-24", "gemini-3.1-flash-image", googlePage}},
	{`text-embedding-004`, ModelEnd{"2026-01-14", "gemini-embedding-001", googlePage}},
}

// pattern matches the whole name of a row's models, with or without a release's date.
var patterns = func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(modelEnds))
	for i, r := range modelEnds {
		list[i] = regexp.MustCompile(`^(?:` + strings.ReplaceAll(r.names, " ", "|") + `)(?:-\d{4}-\d{2}-\d{2})?$`)
	}
	return list
}()

// EndOfModel returns the announced end of a model, by its name with or without a path (models/…, projects/…).
func EndOfModel(model string) (ModelEnd, bool) {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for i, p := range patterns {
		if p.MatchString(name) {
			return modelEnds[i].ModelEnd, true
		}
	}
	return ModelEnd{}, false
}

// waitWords finds: "Please try again in 1.2s", "retry in 6m0s", "Retry after 20 seconds".
var waitWords = regexp.MustCompile(`(?i)\b(?:try again|retry|retry after|try again after) (?:in )?((?:\d+(?:\.\d+)?\s*(?:ms|` +
	`milliseconds?|s|secs?|seconds?|m|minutes?|h|hours?)\b\s*)+|(?:\d+(?:\.\d+)?(?:h|m|s|ms))+)`)

var waitPart = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|minutes?|h|hours?)`)

const longestHint = time.Hour

// WaitIn returns the wait in a provider's error message, at most an hour; zero without one.
func WaitIn(message string) time.Duration {
	found := waitWords.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	var total time.Duration
	for _, part := range waitPart.FindAllStringSubmatch(found[1], 4) {
		unit := strings.ToLower(part[2])
		switch {
		case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "mill"):
			unit = "ms"
		default:
			unit = unit[:1]
		}
		d, err := time.ParseDuration(part[1] + unit)
		if err != nil || d > longestHint {
			return longestHint // the number is too large for a duration
		}
		total += d
	}
	return min(total, longestHint)
}
