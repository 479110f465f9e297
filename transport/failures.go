package transport

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
)

// Kind is the cause of a failure of a model. Adapters find it by close code, HTTP status or error code;
// [Kind.Failure] says how the gateway treats it.
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
	// Retry means that another attempt with the same provider may succeed, Elsewhere that another provider may do
	// better (providers.fallback).
	Retry, Elsewhere bool
	// Code is the protocol's error code for a failed answer, Words is the user's message, and Later means that the
	// user may try again. Without a Code the client gets no error.
	Code, Words string
	Later       bool
	Level       slog.Level
	Alert       Alert
}

// failures covers closes, handshakes and failed answers of every wire, in voice and text. A test compares it with
// docs/providers.md.
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
		"provider_busy", "The model takes no more requests at the moment; try again soon.", true, slog.LevelWarn, AlertDown},
	KindServer: {"server", true, true, "provider_unavailable",
		"The model's provider has a problem at the moment; try again soon.", true, slog.LevelWarn, AlertDown},
	KindTimeout: {"timeout", true, true, "provider_unavailable", "The model did not answer in time; try again soon.",
		true, slog.LevelWarn, AlertDown},
	KindFiltered: {"filtered", false, false,
		"content_filter", "The filter of the model's provider does not let this conversation through; say " +
			"it in other words.", false, slog.LevelInfo, AlertNone},
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
	"quota_exceeded": KindQuota, "insufficient_credits": KindQuota,

	"rate_limit_exceeded": KindRateLimit, "rate_limit_error": KindRateLimit, "resource_exhausted": KindRateLimit,
	"too_many_requests": KindRateLimit, "tokens": KindRateLimit, "requests": KindRateLimit,

	"server_error": KindServer, "internal_error": KindServer, "internal_server_error": KindServer, "internal": KindServer,
	"api_error":        KindServer,
	"overloaded_error": KindServer, "server_overloaded": KindServer, "engine_overloaded": KindServer,
	"service_unavailable": KindServer, "unavailable": KindServer,
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

// KindOfClose returns the kind of a WebSocket close code (RFC 6455 section 7.4.1 and the IANA registry of close
// codes). ready means that the provider had accepted the setup. Adapters handle codes with another meaning on their
// wire. An unknown code is KindRetry.
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
