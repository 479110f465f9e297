package gemini

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// maxReason is the length in bytes at which the provider cuts close reasons,
// in the middle of a word if need be: a control frame carries 125 bytes and two
// of them are the code (RFC 6455 section 5.5).
const maxReason = 123

// Reasons with which the provider closes, as recorded (wire.md B1, read
// 2026-11-20), and the ones Google's JSON layer is known for on every API.
const (
	reasonInvalidArgument = "Request contains an invalid argument."
	reasonBadKey          = "API key not valid. Please pass a valid API key."
	reasonExpiredKey      = "API key expired. Please renew the API key."
	reasonQuota           = "You exceeded your current quota, please check your plan and billing details. " +
		"For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
	reasonNotImplemented  = "Operation is not implemented, or supported, or enabled."
	reasonSessionNotFound = "BidiGenerateContent session not found"
	reasonEntityNotFound  = "Requested entity was not found."
	reasonInternal        = "Internal error encountered."
	reasonAborted         = "The operation was aborted."
	reasonGoAwayIgnored   = "Connection aborted because the client failed to close the connection after receiving a GoAway signal once the session duration expired."
	reasonDeadline        = "Deadline expired before operation could complete."
	reasonVoices          = "Cannot extract voices from a non-audio request."
	reasonPrecondition    = "Precondition check failed."
	reasonBadToken        = "Token is not valid. Please pass a valid token."
	reasonUnavailable     = "The service is currently unavailable."
)

// ErrClosed is returned for connections that arrive after Close.
var ErrClosed = errors.New("gemini simulator: handler is closed")

// closeError ends a connection with the provider's code and reason. It is the
// one way in which this package says that a client did something wrong: the
// Developer API sends no error message in the stream.
type closeError struct {
	Code   websocket.StatusCode
	Reason string
}

func (e *closeError) Error() string {
	return fmt.Sprintf("close %d: %s", int(e.Code), e.Reason)
}

// invalid is the close for a message that is malformed or not allowed.
func invalid(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusInvalidFramePayloadData, Reason: fmt.Sprintf(format, args...)}
}

// policy is the close for a message that names something unknown or forbidden.
func policy(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusPolicyViolation, Reason: fmt.Sprintf(format, args...)}
}

// internal is the close for what the provider calls its own fault.
func internal(reason string) *closeError {
	return &closeError{Code: websocket.StatusInternalError, Reason: reason}
}

// cutReason shortens a close reason to what fits a close frame. The cut may
// fall in a word, as the provider's does, but never in a character: the
// reason must stay UTF-8.
func cutReason(s string) string {
	if len(s) <= maxReason {
		return s
	}
	s = s[:maxReason]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
