package openai

import (
	"errors"
	"strings"
)

// What New refuses. The error returned wraps one of them, names the option and
// says how to mend it.
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

// Causes that this side finds by itself. They are wrapped in a [transport.Error].
var (
	errClosed     = errors.New("closed by this side")
	errSilentPeer = errors.New("the provider has given no sign of life: no frame and no pong")
	errTooBig     = errors.New("the provider sent a frame over the read limit")
	errCrammed    = errors.New("one frame of the provider's holds more events than are taken")
	errTooMany    = errors.New("the provider did not answer the setup within the first events")
	errCommand    = errors.New("not a command of package transport")
	errEncode     = errors.New("cannot be encoded")
)

// maxErrorText bounds what is kept of a provider's message, in bytes.
const maxErrorText = 300

// redactor takes a credential out of the text of errors.
type redactor struct{ secret string }

// text returns s without the secret and not longer than maxErrorText.
func (r redactor) text(s string) string {
	if r.secret != "" {
		s = strings.ReplaceAll(s, r.secret, "[redacted]")
	}
	return clip(s, maxErrorText)
}

// err returns an error without the secret: err itself where its text does not hold
// it, else a plain one, as unwrapping would bring the secret back.
func (r redactor) err(err error) error {
	if err == nil || r.secret == "" || !strings.Contains(err.Error(), r.secret) {
		return err
	}
	return errors.New(r.text(err.Error()))
}

// clip cuts s to at most n bytes without cutting a character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
