package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

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

// closeKinds is the meaning of a close code before setupComplete and after it. The
// close reasons seen with each code are in the comments, to help in reading a log; the code
// decides nothing by them. Codes that are missing here mean KindRetry.
var closeKinds = map[websocket.StatusCode]struct{ setup, session transport.Kind }{
	1000: {transport.KindRetry, transport.KindRetry},
	1001: {transport.KindRetry, transport.KindRetry},
	1002: {transport.KindInvalid, transport.KindRetry},
	1003: {transport.KindInvalid, transport.KindInvalid},
	// "Request contains an invalid argument.", "API key not valid.", a schema that
	// breaks the rules, an unknown field; later an exhausted context, which would
	// also exhaust a new connection with the same context.
	1007: {transport.KindInvalid, transport.KindInvalid},
	// "models/X is not found", "session not found" (a bad handle); later "The
	// operation was aborted." and, at random after tool answers, "Operation is not
	// implemented, or supported, or enabled.", after which one new attempt is right.
	1008: {transport.KindInvalid, transport.KindRetry},
	1009: {transport.KindInvalid, transport.KindInvalid},
	1010: {transport.KindInvalid, transport.KindInvalid},
	// "Internal error encountered.", "Deadline expired before operation could
	// complete.", also "You exceeded your current quota": the code alone does not distinguish
	// them.
	1011: {transport.KindRetry, transport.KindRetry},
}

// expiryCodes are the close codes of a connection that ends after its goAway.
var expiryCodes = map[websocket.StatusCode]bool{1000: true, 1001: true, 1006: true, 1008: true, 1011: true}

// closeKind classifies a close code. 1006 stands for an end without a close frame.
func closeKind(code websocket.StatusCode, ready, away bool) transport.Kind {
	if away && expiryCodes[code] {
		return transport.KindExpired
	}
	row, known := closeKinds[code]
	switch {
	case !known:
		return transport.KindRetry
	case ready:
		return row.session
	default:
		return row.setup
	}
}

// statusKind classifies an HTTP status, of the handshake or of a top-level error
// message.
func statusKind(status int) transport.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return transport.KindAuth
	case http.StatusTooManyRequests:
		return transport.KindQuota
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return transport.KindRetry
	}
	if status >= 500 {
		return transport.KindRetry
	}
	return transport.KindInvalid
}

// scrub removes the credential from text that came from outside.
func scrub(secret, text string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// fail makes the package's error. It removes the credential from the cause, wherever
// it came from.
func (t *Transport) fail(secret, op string, kind transport.Kind, code string, cause error) *transport.Error {
	if cause != nil {
		if text := scrub(secret, cause.Error()); text != cause.Error() {
			cause = errors.New(text)
		}
	}
	return &transport.Error{Provider: t.opts.Name, Op: op, Kind: kind, Code: code, Err: cause}
}

// contextKind classifies the end of a caller's context: after a deadline a new attempt may
// succeed; a cancellation was this side's decision.
func contextKind(err error) transport.Kind {
	if errors.Is(err, context.DeadlineExceeded) {
		return transport.KindRetry
	}
	return transport.KindClosed
}

// statusCode returns a google.rpc.Code name that is safe for logs and metrics, or
// the number if the provider sent another text.
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
		return t.fail(secret, "dial", contextKind(ctx.Err()), "", fmt.Errorf("%w: %w", context.Cause(ctx), err))
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return t.fail(secret, "dial", statusKind(resp.StatusCode), strconv.Itoa(resp.StatusCode), err)
	default:
		return t.fail(secret, "dial", transport.KindRetry, "", err)
	}
}
