package image

import (
	"context"
	"time"
)

// Request is what is to be made.
type Request struct {
	// Prompt says what the images show.
	Prompt string
	// Width and Height are in pixels. A provider with other sizes makes its own most similar
	// shape.
	Width, Height int
	// Count is how many images are wanted, at least 1.
	Count int
	// User identifies the user to the provider, which may want to know whom abuse comes from.
	// It reveals nothing about the user and may be empty.
	User string
}

// Generated is an image as the provider sent it, unchecked.
type Generated struct {
	Data []byte
	// Prompt is the provider's version of the prompt; empty if it is unchanged.
	Prompt string
}

// Generator is an image model. It may be used concurrently.
type Generator interface {
	// Generate makes at least one image and at most as many as requested. The error is an *Error,
	// or that of ctx.
	Generate(ctx context.Context, r Request) ([]Generated, error)
}

// Limits of what a provider may send.
const (
	// MaxBytes is the largest image.
	MaxBytes = 10 << 20
	// MaxSide is the longest side, in pixels.
	MaxSide = 8192
	// MaxCount is the most images of one request.
	MaxCount = 4
	// MaxAnswer is the largest answer of a provider, in bytes: the images in base64, and the
	// text around them.
	MaxAnswer = 14 << 20
)

// Error is a failure of an image model. It names no key.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 without an answer.
	Status int
	// RetryAfter is the pause that the provider asks for; 0 if it does not ask for a pause.
	RetryAfter time.Duration
	// Reason is the provider's own words, at most 300 characters, for KindRefused and
	// KindRequest; may be empty.
	Reason string
	// Unsure says that the request was sent and no whole answer came, so images may have been
	// made and may cost something.
	Unsure bool
	Err    error
}
