package openai

import (
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// Codes that the adapter acts on by name.
const (
	codeActiveResponse = "conversation_already_has_active_response"
	codeCancelLate     = "response_cancel_not_active"
)

// harmless are the codes of `error` events that need no reaction: a request came too late, or the
// sequencer deals with it.
var harmless = map[string]bool{codeCancelLate: true, "input_audio_buffer_commit_empty": true, codeActiveResponse: true}

// noSession are the codes of `error` events after which the provider serves no session with this setup.
var noSession = map[string]bool{"beta_api_shape_disabled": true, "invalid_intent": true, "invalid_model": true, "model_not_found": true}

// kindOfError returns the kind of an `error` event. op is the purpose of the client event that caused
// it; empty if that is unknown. fatal means that the error ends the connection; otherwise it is a Problem.
// It is not shown to the user if it refuses a command that the user did not give and cannot give again.
func kindOfError(e *errorValue, op string) (kind transport.Kind, fatal bool) {
	if harmless[e.Code] {
		return transport.KindIgnore, false
	}
	switch kind = transport.KindOfCode(e.Code); kind {
	case transport.KindAuth, transport.KindQuota, transport.KindExpired:
		return kind, true
	case transport.KindInvalid:
		if noSession[e.Code] {
			return kind, true
		}
	}
	switch op {
	case opTruncate, opCancel, opBuffer, opResult, opAdded:
		return transport.KindIgnore, false
	}
	if kind != 0 && kind != transport.KindInvalid {
		return kind, false
	}
	if transport.KindOfCode(e.Type) == transport.KindServer {
		return transport.KindServer, false
	}
	return transport.KindRefused, false
}

// closeKinds are the close codes that mean something else here than in [transport.KindOfClose].
var closeKinds = map[websocket.StatusCode]transport.Kind{
	// Going away: the 60 minutes are over, or the server is leaving. A new connection works.
	websocket.StatusGoingAway: transport.KindExpired,
	3000:                      transport.KindAuth,    // invalid_request_error.invalid_api_key
	4000:                      transport.KindInvalid, // invalid_request_error.<code>
}

// closeKind classifies a close frame. A reason of the form `<error.type>.<error.code>` (without a
// blank) takes precedence over the number.
func closeKind(code websocket.StatusCode, reason string, ready bool) (transport.Kind, string) {
	if at := strings.LastIndexByte(reason, '.'); at >= 0 && !strings.Contains(reason, " ") {
		if kind := transport.KindOfCode(reason[at+1:]); kind != 0 {
			return kind, reason[at+1:]
		}
	}
	if kind, ok := closeKinds[code]; ok {
		return kind, strconv.Itoa(int(code))
	}
	return transport.KindOfClose(int(code), ready), strconv.Itoa(int(code))
}

// statusKind classifies a refused handshake by the error code in its body, if the table knows it, or
// else by its status.
func statusKind(status int, bodyCode string) (transport.Kind, string) {
	if kind := transport.KindOfCode(bodyCode); kind != 0 {
		return kind, bodyCode
	}
	return transport.KindOfStatus(status), strconv.Itoa(status)
}
