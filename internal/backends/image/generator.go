// Package image makes images from prompts and keeps them until they expire. A [Generator] is a provider's image model,
// [Files] keep the images, and a [Studio] combines both and checks the provider's images.
//
// An image's address contains a secret, so only clients that know the address get the image.
package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

// Request asks for images.
type Request struct {
	Prompt        string
	Width, Height int    // in pixels. A provider with other sizes uses its most similar shape.
	Count         int    // at least 1
	User          string // a pseudonym of the user for the provider, which can use it against abuse. It may be empty.
}

// Generated is an unchecked image of a provider.
type Generated struct {
	Data   []byte
	Prompt string // the provider's version of the prompt; empty if it is unchanged
}

// Generator is an image model. It may be used concurrently.
type Generator interface {
	// Generate makes 1 to r.Count images. The error is an *Error, or that of ctx.
	Generate(ctx context.Context, r Request) ([]Generated, error)
}

// Limits of a provider's answer.
const (
	MaxBytes  = 10 << 20 // of an image
	MaxSide   = 8192     // pixels
	MaxCount  = 4        // images of a request
	MaxAnswer = 14 << 20 // bytes of an answer with images in base64
)

// Error is a failure of an image model. It contains no key.
type Error struct {
	Kind       Kind
	Status     int           // of HTTP; 0 without an answer
	RetryAfter time.Duration // the pause that the provider requested; 0 means none
	Reason     string        // the provider's text, at most 300 characters, for KindRefused and KindRequest; may be empty
	// Unsure means that the request was sent but the answer is incomplete, so the provider may charge for images.
	Unsure bool
	Err    error
}

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

var noImage = &Error{Kind: KindAnswer, Err: errors.New("the answer contains no image")}

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
	return document.Shorten(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "), maxReason)
}

// limits bound the answer of an image model to most bytes.
func limits(most int64) bounded.Limits {
	return bounded.Limits{
		Service: "the image model", Format: bounded.JSON, Bytes: most, Elements: 10_000,
		Idle: 3 * time.Minute, Whole: 5 * time.Minute, // the model sends nothing while it draws
	}
}
