package gemini

import (
	"fmt"

	"github.com/coder/websocket"
)

// Close reasons of the provider, as users' reports quote them (among them livekit/agents#2274, #4159, #4414 and #4545,
// googleapis/js-genai#1236, google/adk-python#225 and #3918, yagudaev/voiceclaw#155; read 2026-11-20), and those of
// Google's JSON layer, which are the same on every API. The connection cuts them at 123 bytes, as the provider does.
const (
	reasonInvalidArgument = "Request contains an invalid argument."
	reasonBadKey          = "API key not valid. Please pass a valid API key."
	reasonExpiredKey      = "API key expired. Please renew the API key."
	reasonQuota           = "You exceeded your current quota, please check your plan and billing details. " +
		"For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
	reasonNotImplemented  = "Operation is not implemented, or supported, or enabled."
	reasonSessionNotFound = "BidiGenerateContent session not found"
	reasonInternal        = "Internal error encountered."
	reasonAborted         = "The operation was aborted."
	reasonGoAwayIgnored   = "Connection aborted because the client failed to close the connection after receiving a GoAway " +
		"signal once the session duration expired."
	reasonDeadline = "Deadline expired before operation could complete."
	reasonVoices   = "Cannot extract voices from a non-audio request."
	// The provider's texts about tokens are not recorded; these are its texts about keys.
	reasonBadToken     = "Ephemeral token not valid. Please pass a valid ephemeral token."
	reasonExpiredToken = "Ephemeral token expired. Please renew the ephemeral token."
	reasonUsedToken    = "Ephemeral token has no uses left. Please renew the ephemeral token."
)

// closeError ends a connection with the provider's code and reason. Only in this way does the package report a client's
// mistake: the Developer API sends no error message in the stream.
type closeError struct {
	Code   websocket.StatusCode
	Reason string
}

func (e *closeError) Error() string {
	return fmt.Sprintf("close %d: %s", int(e.Code), e.Reason)
}

func invalid(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusInvalidFramePayloadData, Reason: fmt.Sprintf(format, args...)}
}

func policy(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusPolicyViolation, Reason: fmt.Sprintf(format, args...)}
}

func internal(reason string) *closeError {
	return &closeError{Code: websocket.StatusInternalError, Reason: reason}
}
