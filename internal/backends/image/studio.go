package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Made is a checked and stored image.
type Made struct {
	// ID is the image's secret name: 256 random bits in base64url.
	ID string
	Info
	// Prompt is the provider's version of the prompt, or the request's.
	Prompt string
	// ExpiresAt is in UTC.
	ExpiresAt time.Time
}

// Store keeps images; *Files implements it. It may be used concurrently.
type Store interface {
	// Keep stores an image and returns its name. The caller must not change data afterwards.
	Keep(ctx context.Context, data []byte, info Info) (id string, expires time.Time, err error)
}

// Studio makes images. It may be used concurrently.
type Studio struct {
	// Fixed after NewStudio.
	generator Generator
	store     Store
}

// NewStudio returns a Studio; neither argument may be nil.
func NewStudio(g Generator, s Store) (*Studio, error) {
	if g == nil || s == nil {
		return nil, errors.New("image: a Studio needs a Generator and a Store")
	}
	return &Studio{g, s}, nil
}

// Make makes images and stores the valid ones. spoilt are the problems of the others. The error is an *Error, of
// KindAnswer if the provider sent no valid image, or that of ctx, or wraps ErrKeep.
func (s *Studio) Make(ctx context.Context, r Request) (made []Made, spoilt []error, err error) {
	r.Count = min(max(r.Count, 1), MaxCount)
	all, err := s.generator.Generate(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range all[:min(len(all), r.Count)] {
		info, err := Inspect(g.Data)
		if err != nil {
			spoilt = append(spoilt, err)
			continue
		}
		id, expires, err := s.store.Keep(ctx, g.Data, info)
		if err != nil {
			return made, spoilt, fmt.Errorf("%w: %w", ErrKeep, err)
		}
		m := Made{ID: id, Info: info, Prompt: cmp.Or(g.Prompt, r.Prompt), ExpiresAt: expires}
		made = append(made, m)
	}
	if len(made) == 0 {
		cause := errors.Join(spoilt...)
		if cause == nil {
			cause = errors.New("the provider sent no image")
		}
		return nil, spoilt, &Error{Kind: KindAnswer, Err: cause}
	}
	return made, spoilt, nil
}
