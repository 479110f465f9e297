package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/bounded"
	"voicegw/transport"
)

// defaultName is the name of a provider whose Options set none, and of the wire.
const defaultName = "gemini"

// ErrOptions is wrapped by every error of [New].
var ErrOptions = errors.New("gemini: invalid options")

// Causes for which the provider is responsible.
var (
	errSetupEnded = errors.New("the connection ended before setupComplete")
	errTooMany    = errors.New("a message from the provider contains too many events")
	errSetupLate  = errors.New("the provider sent too many messages before setupComplete")
	errAudio      = errors.New("the audio is not valid base64")
)

// sessionKinds are the close codes that mean something else here, once the setup is accepted, than in
// [transport.KindOfClose].
//
// Seen with 1007: "Request contains an invalid argument.", a schema that breaks the rules, an unknown field, later an
// exhausted context. With 1008: "models/X is not found", "session not found" (a bad handle), later "The operation was
// aborted." and, at random after tool answers, "Operation is not implemented, or supported, or enabled.". With 1011:
// "Internal error encountered.", "Deadline expired before operation could complete.".
var sessionKinds = map[websocket.StatusCode]transport.Kind{websocket.StatusProtocolError: transport.KindRetry}

// reasonKinds are the beginnings of close reasons whose code is that of other failures too (seen in
// reports up to 2026-11-20). The service has no error code in its close frames.
var reasonKinds = []struct {
	reason string
	kind   transport.Kind
}{
	{"You exceeded your current quota", transport.KindQuota},  // 1011
	{"Resource has been exhausted", transport.KindRateLimit},  // 1011
	{"API key not valid", transport.KindAuth},                 // 1007
	{"API key expired", transport.KindAuth},                   // 1007
	{"API Key not found", transport.KindAuth},                 // 1007
	{"User location is not supported", transport.KindInvalid}, // 1007
}

// expiryCodes are the close codes of a connection that ends after its goAway.
var expiryCodes = map[websocket.StatusCode]bool{1000: true, 1001: true, 1006: true, 1008: true, 1011: true}

// closeKind classifies a close frame. 1006 means an end without a close frame.
func closeKind(code websocket.StatusCode, reason string, ready, away bool) transport.Kind {
	for _, row := range reasonKinds {
		if strings.HasPrefix(reason, row.reason) {
			return row.kind
		}
	}
	if away && expiryCodes[code] {
		return transport.KindExpired
	}
	if kind, ok := sessionKinds[code]; ok && ready {
		return kind
	}
	return transport.KindOfClose(int(code), ready)
}

func scrub(secret, text string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// fail makes the package's error. It removes the credential from the cause, wherever it came from.
func (t *Transport) fail(secret, op string, kind transport.Kind, code string, cause error) *transport.Error {
	if cause != nil {
		if text := scrub(secret, cause.Error()); text != cause.Error() {
			cause = errors.New(text)
		}
	}
	return &transport.Error{Provider: t.opts.Name, Op: op, Kind: kind, Code: code, Err: cause}
}

// After a deadline a new attempt may succeed; a cancellation was this side's decision.
func contextKind(err error) transport.Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return transport.KindTimeout
	}
	return transport.KindClosed
}

// statusCode returns the number unless status is a google.rpc.Code name, which is safe for logs and metrics.
func statusCode(status string, number int) string {
	const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if status == "" || len(status) > 32 || strings.Trim(status, upper) != "" {
		return strconv.Itoa(number)
	}
	return status
}

// dialError classifies a failed handshake. resp is nil if there was no answer.
func (t *Transport) dialError(ctx context.Context, secret string, resp *http.Response, err error) *transport.Error {
	switch {
	case ctx.Err() != nil:
		return t.fail(secret, "dial", contextKind(ctx.Err()),
			"no_handshake", fmt.Errorf("the provider did not answer the handshake in time: %w: %w", context.Cause(ctx), err))
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		out := t.fail(secret, "dial", transport.KindOfStatus(resp.StatusCode), strconv.Itoa(resp.StatusCode), err)
		out.RetryAfter = bounded.RetryAfter(resp.Header, time.Now())
		return out
	default:
		return t.fail(secret, "dial", transport.KindRetry, "", err)
	}
}
