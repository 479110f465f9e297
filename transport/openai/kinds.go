package openai

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// errorRow is how the adapter treats an error code of the provider.
type errorRow struct {
	kind transport.Kind
	// fatal means that the error ends the connection; otherwise it is a Problem.
	fatal bool
}

// Codes that the adapter acts on by name.
const (
	codeActiveResponse = "conversation_already_has_active_response"
	codeCancelLate     = "response_cancel_not_active"
)

// errorRows is the one table of provider error codes: those of `error` events, of
// failed responses, of refused handshakes and of close reasons, which have the form
// `<error.type>.<error.code>`. A code that is missing here is KindRefused, not fatal.
// Seen in recordings and reports up to 2026-11-20.
var errorRows = map[string]errorRow{
	"insufficient_quota":         {transport.KindQuota, true},
	"billing_hard_limit_reached": {transport.KindQuota, true},

	"invalid_api_key":     {transport.KindAuth, true},
	"expired_api_key":     {transport.KindAuth, true},
	"missing_api_key":     {transport.KindAuth, true},
	"account_deactivated": {transport.KindAuth, true},

	"session_expired": {transport.KindExpired, true},

	"beta_api_shape_disabled": {transport.KindInvalid, true},
	"invalid_intent":          {transport.KindInvalid, true},
	"invalid_model":           {transport.KindInvalid, true},
	"model_not_found":         {transport.KindInvalid, true},

	codeCancelLate:                    {transport.KindIgnore, false},
	"input_audio_buffer_commit_empty": {transport.KindIgnore, false},
	// The sequencer handles this code; if it cannot, the error is harmless.
	codeActiveResponse: {transport.KindIgnore, false},
}

// rowFor returns the row for an `error` event. op is the purpose of the client event that
// caused it, from its event id: a truncation that comes too late has no code
// of its own (invalid_value), but never matters.
func rowFor(code, op string) errorRow {
	if row, ok := errorRows[code]; ok {
		return row
	}
	if op == opTruncate || op == opCancel {
		return errorRow{transport.KindIgnore, false}
	}
	return errorRow{transport.KindRefused, false}
}

// closeKinds is the one table of close codes (RFC 6455 section 7.4.1 and codes seen from
// the provider). A code that is missing here is KindRetry: the caller limits its
// attempts.
var closeKinds = map[websocket.StatusCode]transport.Kind{
	websocket.StatusNormalClosure: transport.KindRetry,
	// Going away: the 60 minutes are over, or the server is leaving. A new connection works.
	websocket.StatusGoingAway:               transport.KindExpired,
	websocket.StatusProtocolError:           transport.KindInvalid,
	websocket.StatusUnsupportedData:         transport.KindInvalid,
	websocket.StatusNoStatusRcvd:            transport.KindRetry,
	websocket.StatusAbnormalClosure:         transport.KindRetry,
	websocket.StatusInvalidFramePayloadData: transport.KindInvalid,
	websocket.StatusPolicyViolation:         transport.KindInvalid,
	websocket.StatusMessageTooBig:           transport.KindInvalid,
	websocket.StatusMandatoryExtension:      transport.KindInvalid,
	websocket.StatusInternalError:           transport.KindRetry,
	websocket.StatusServiceRestart:          transport.KindRetry,
	websocket.StatusTryAgainLater:           transport.KindRetry,
	websocket.StatusBadGateway:              transport.KindRetry,
	3000:                                    transport.KindAuth,    // invalid_request_error.invalid_api_key
	4000:                                    transport.KindInvalid, // invalid_request_error.<code>
}

// closeKind classifies a close frame. A reason that is a code (without a blank) takes
// precedence over the number.
func closeKind(code websocket.StatusCode, reason string) (transport.Kind, string) {
	if at := strings.LastIndexByte(reason, '.'); at >= 0 && !strings.Contains(reason, " ") {
		if row, ok := errorRows[reason[at+1:]]; ok {
			return row.kind, reason[at+1:]
		}
	}
	if kind, ok := closeKinds[code]; ok {
		return kind, strconv.Itoa(int(code))
	}
	return transport.KindRetry, strconv.Itoa(int(code))
}

// statusKinds is the one table of HTTP statuses of a refused handshake. Other 5xx statuses
// are KindRetry and the rest KindInvalid.
var statusKinds = map[int]transport.Kind{
	http.StatusUnauthorized:    transport.KindAuth,
	http.StatusPaymentRequired: transport.KindQuota,
	http.StatusForbidden:       transport.KindAuth,
	http.StatusNotFound:        transport.KindInvalid, // unknown path, model or deployment
	http.StatusRequestTimeout:  transport.KindRetry,
	http.StatusConflict:        transport.KindRetry,
	http.StatusTooEarly:        transport.KindRetry,
	http.StatusTooManyRequests: transport.KindRetry,
}

// statusKind classifies a refused handshake by the error code in its body, if there is
// one, or else by its status.
func statusKind(status int, bodyCode string) (transport.Kind, string) {
	if row, ok := errorRows[bodyCode]; ok && row.fatal {
		return row.kind, bodyCode
	}
	if kind, ok := statusKinds[status]; ok {
		return kind, strconv.Itoa(status)
	}
	if status >= 500 {
		return transport.KindRetry, strconv.Itoa(status)
	}
	return transport.KindInvalid, strconv.Itoa(status)
}
