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
	KindTransient Kind = "transient"  // overloaded, unreachable, or an incomplete answer
	KindRefused   Kind = "refused"    // the provider's moderation refuses this image
	KindRequest   Kind = "request"    // the provider refuses the request: model, size, prompt
	KindAnswer    Kind = "answer"     // the answer is not an image, or exceeds a limit
)

var (
	// ErrUnknown is returned by Files for the name of an image that never existed or expired long ago.
	ErrUnknown = errors.New("image: unknown image")
	// ErrExpired is returned by Files for an expired or removed image.
	ErrExpired = errors.New("image: the image has expired")
	// ErrFormat is wrapped by errors about images of other types.
	ErrFormat = errors.New("image: not a PNG, JPEG or WebP image")
	// ErrSize is wrapped by errors about images with too many bytes or pixels.
	ErrSize = errors.New("image: too large")
	// ErrKeep is wrapped by errors of storing a new image.
	ErrKeep = errors.New("image: storing the image")
	// ErrClosed is returned by Files after Close.
	ErrClosed = errors.New("image: closed")
)

// Error returns the kind, the status, and the cause or the reason.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// kindOf classifies a provider's unsuccessful HTTP status.
func kindOf(status int) Kind {
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

// maxReason bounds Error.Reason in characters.
const maxReason = 300

// oneLine returns a provider's text as one line of bounded length, without the secrets.
func oneLine(text string, secrets ...string) string {
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
