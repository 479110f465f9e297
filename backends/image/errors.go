package image

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Kind classes what goes wrong with an image model.
type Kind string

// The kinds.
const (
	KindAuth      Kind = "auth"       // the key is wrong or may not
	KindRateLimit Kind = "rate_limit" // too much, or the quota is used up
	KindTransient Kind = "transient"  // overloaded, unreachable, broken off
	KindRefused   Kind = "refused"    // its moderation does not want to make this image
	KindRequest   Kind = "request"    // it does not take the request: model, size, prompt
	KindAnswer    Kind = "answer"     // what it sent is no image, or over a limit
)

var (
	// ErrUnknown is what Files returns for an address under which nothing ever was, as
	// far as is remembered.
	ErrUnknown = errors.New("image: there is no such image")
	// ErrExpired is what Files returns for an image that was there and is no more.
	ErrExpired = errors.New("image: the image is no longer kept")
	// ErrFormat is wrapped by what Inspect says of bytes that are no image of a kind
	// that is passed on.
	ErrFormat = errors.New("image: not a PNG, JPEG or WebP image")
	// ErrSize is wrapped where an image has more bytes or pixels than are taken.
	ErrSize = errors.New("image: too large")
	// ErrKeep is wrapped where an image was made and cannot be kept.
	ErrKeep = errors.New("image: it cannot be kept")
	// ErrClosed is what Files returns after Close.
	ErrClosed = errors.New("image: closed")
)

// Error is the kind, the status and the cause.
func (e *Error) Error() string {
	text := "image model: " + string(e.Kind)
	if e.Status != 0 {
		text += " (status " + strconv.Itoa(e.Status) + ")"
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", text, e.Err)
	}
	if e.Reason != "" {
		return text + ": " + e.Reason
	}
	return text
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOfStatus classes an HTTP status of a provider that is no success.
func KindOfStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return KindAuth
	case status == http.StatusTooManyRequests:
		return KindRateLimit
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return KindTransient
	default:
		return KindRequest
	}
}

// maxReason is the longest Error.Reason, in characters.
const maxReason = 300

// Reason is what a provider said in a form that can be shown: one line, of bounded length,
// without the secrets.
func Reason(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return text
}
