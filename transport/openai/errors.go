package openai

import (
	"errors"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// The errors of New. The returned error wraps one of them, names the option and describes how to correct it.
var (
	// ErrNoKey: the public service needs a key.
	ErrNoKey = errors.New("no API key")
	// ErrBadKey: the key cannot be sent in a header.
	ErrBadKey = errors.New("API key cannot be sent")
	// ErrBadURL: the base URL cannot be used.
	ErrBadURL = errors.New("base URL cannot be used")
	// ErrBadOption: another option has a value that cannot be used.
	ErrBadOption = errors.New("option cannot be used")
)

// Causes that the adapter finds itself. They are wrapped in a [transport.Error].
var (
	errClosed     = errors.New("closed by this side")
	errSilentPeer = errors.New("the provider has been silent for too long: no frame and no pong")
	errTooBig     = errors.New("the provider sent a frame larger than the read limit")
	errCrammed    = errors.New("a frame from the provider contains too many events")
	errTooMany    = errors.New("the provider did not answer the setup within the first events")
	errIncomplete = errors.New("the provider cut the answer off")
	errNoReason   = errors.New("the response failed without a reason")
	errFormat     = errors.New("the server announces audio that the gateway cannot use")
	errCommand    = errors.New("not a command of package transport")
	errEncode     = errors.New("cannot be encoded")
)

// maxErrorText bounds the kept part of a provider's message, in bytes.
const maxErrorText = 300

// redactor removes a credential from the text of errors.
type redactor struct{ secret string }

// text returns s without the secret and at most maxErrorText bytes long.
func (r redactor) text(s string) string {
	if r.secret != "" {
		s = strings.ReplaceAll(s, r.secret, "[redacted]")
	}
	return clip(s, maxErrorText)
}

// err returns an error without the secret: err itself if its text does not contain the
// secret, otherwise a plain error, because unwrapping would reveal the secret again.
func (r redactor) err(err error) error {
	if err == nil || r.secret == "" || !strings.Contains(err.Error(), r.secret) {
		return err
	}
	return errors.New(r.text(err.Error()))
}

// clip shortens s to at most n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// Codes that the adapter acts on by name.
const (
	codeActiveResponse = "conversation_already_has_active_response"
	codeCancelLate     = "response_cancel_not_active"
)

// harmless are the codes of `error` events that came too late or are the sequencer's.
var harmless = map[string]bool{codeCancelLate: true, "input_audio_buffer_commit_empty": true, codeActiveResponse: true}

// noSession are the codes of `error` events after which the provider serves no session with this setup.
var noSession = map[string]bool{"beta_api_shape_disabled": true, "invalid_intent": true, "invalid_model": true, "model_not_found": true}

// kindOfError returns the kind of an `error` event about a client event of purpose op (may be empty). A fatal one ends
// the connection; others are Problems, hidden from the user if they refuse what the user did not ask for.
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

// A reason of the form `<error.type>.<error.code>` takes precedence over the number.
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

func statusKind(status int, bodyCode string) (transport.Kind, string) {
	if kind := transport.KindOfCode(bodyCode); kind != 0 {
		return kind, bodyCode
	}
	return transport.KindOfStatus(status), strconv.Itoa(status)
}
