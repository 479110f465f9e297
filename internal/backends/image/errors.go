package image

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Kind classifies the failures of an image model.
type Kind string

// The kinds.
const (
	KindAuth      Kind = "auth"       // the key is wrong or lacks permission
	KindRateLimit Kind = "rate_limit" // too many requests, or the quota is used up
	KindTransient Kind = "transient"  // overloaded, unreachable, broken off
	KindRefused   Kind = "refused"    // the provider's moderation refuses this image
	KindRequest   Kind = "request"    // the provider refuses the request: model, size, prompt
	KindAnswer    Kind = "answer"     // the answer is not an image, or exceeds a limit
)

var (
	// ErrUnknown is returned by Files for an address that never had an image, as far as Files
	// remembers.
	ErrUnknown = errors.New("image: there is no such image")
	// ErrExpired is returned by Files for an image that was removed.
	ErrExpired = errors.New("image: the image is no longer kept")
	// ErrFormat is wrapped by Inspect's error for bytes that are not an image of an accepted
	// type.
	ErrFormat = errors.New("image: not a PNG, JPEG or WebP image")
	// ErrSize is wrapped by the error for an image with too many bytes or pixels.
	ErrSize = errors.New("image: too large")
	// ErrKeep is wrapped by the error for an image that was made and cannot be stored.
	ErrKeep = errors.New("image: it cannot be kept")
	// ErrClosed is returned by Files after Close.
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

// KindOfStatus classifies a provider's HTTP status that is not a success.
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

// Reason returns a provider's text in a form that can be shown: one line, of bounded length,
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
