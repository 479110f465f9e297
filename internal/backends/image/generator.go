package image

import (
	"context"
	"time"
)

// Request asks for images.
type Request struct {
	// Prompt describes the images.
	Prompt string
	// Width and Height are in pixels. A provider with other sizes uses its most similar shape.
	Width, Height int
	// Count is the number of images, at least 1.
	Count int
	// User is a pseudonym of the user for the provider, which can use it against abuse. It may be empty.
	User string
}

// Generated is an unchecked image of a provider.
type Generated struct {
	Data []byte
	// Prompt is the provider's version of the prompt; empty if it is unchanged.
	Prompt string
}

// Generator is an image model. It may be used concurrently.
type Generator interface {
	// Generate makes 1 to r.Count images. The error is an *Error, or that of ctx.
	Generate(ctx context.Context, r Request) ([]Generated, error)
}

// Limits of a provider's answer.
const (
	// MaxBytes bounds an image.
	MaxBytes = 10 << 20
	// MaxSide bounds a side in pixels.
	MaxSide = 8192
	// MaxCount bounds the images of a request.
	MaxCount = 4
	// MaxAnswer bounds an answer with images in base64, in bytes.
	MaxAnswer = 14 << 20
)

// Error is a failure of an image model. It contains no key.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 without an answer.
	Status int
	// RetryAfter is the pause that the provider requested; 0 means none.
	RetryAfter time.Duration
	// Reason is the provider's text, at most 300 characters, for KindRefused and KindRequest; may be empty.
	Reason string
	// Unsure means that the request was sent but the answer is incomplete, so the provider may charge for images.
	Unsure bool
	Err    error
}
