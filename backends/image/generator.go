package image

import (
	"context"
	"time"
)

// Request is what is to be made.
type Request struct {
	// Prompt says what the images show.
	Prompt string
	// Width and Height are in pixels. A provider that has other sizes takes the nearest
	// shape of its own.
	Width, Height int
	// Count is how many images are wanted, at least 1.
	Count int
	// User names the user to the provider, who may want to know whom abuse comes from;
	// not readable, may be empty.
	User string
}

// Generated is an image as a provider gave it: nobody has looked at it.
type Generated struct {
	Data []byte
	// Prompt is what the provider made of the prompt; empty if it left it as it was.
	Prompt string
}

// Generator is an image model. It may be used by any number of goroutines.
type Generator interface {
	// Generate makes images, at least one and at most as many as wanted. The error is an
	// *Error, or that of ctx.
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
	// MaxAnswer is the largest answer of a provider, in bytes: the images in base64, and
	// what stands around them.
	MaxAnswer = 14 << 20
)

// Error is a failure of an image model. It names no key.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 where there was none.
	Status int
	// RetryAfter is what the provider asks for; 0 where it says nothing.
	RetryAfter time.Duration
	// Reason is the provider's own words, at most 300 characters, for KindRefused and
	// KindRequest; may be empty.
	Reason string
	// Unsure says that the request was sent and no whole answer came, so that images may
	// have been made and have cost something.
	Unsure bool
	Err    error
}
