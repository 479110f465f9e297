package openai

import (
	"errors"
	"strings"
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
