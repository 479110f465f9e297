// Package imagegenerate implements the tool image_generate.
package imagegenerate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"voicegw/internal/backends/image"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of image_generate.
type Needs struct {
	Studio  *image.Studio
	Gallery registry.Gallery
}

// Path is the gateway's path for images; an id follows.
const Path = "/v1/images/"

// Image is one image of an Answer.
type Image struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Type   string `json:"type"`
	// Prompt is set if the provider changed it.
	Prompt string `json:"prompt,omitempty"`
	// ExpiresAt is RFC 3339 UTC with milliseconds.
	ExpiresAt string `json:"expires_at"`
}

// Answer is the data of a success.
type Answer struct {
	Images []Image `json:"images"`
	// Missing is the number of requested images that were not created.
	Missing int `json:"missing,omitempty"`
}

// Execute creates the images and shows them. A call that fails shows nothing.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	prompt := strings.TrimSpace(call.Args.Prompt)
	if textutil.IsBlank(prompt) {
		return registry.Result{}, registry.Invalid(
			[]document.Problem{{Path: "/prompt", Message: "Say what the image shows."}}, "The prompt is blank.")
	}
	request := image.Request{Prompt: prompt, Count: int(call.Args.Count), User: userName(call.Session.UserID)}
	if _, err := fmt.Sscanf(string(call.Args.Size), "%dx%d", &request.Width, &request.Height); err != nil {
		return registry.Result{}, fmt.Errorf("the size %q: %w", call.Args.Size, err)
	}
	made, _, err := call.Needs.Studio.Make(ctx, request)
	if err != nil {
		return registry.Result{}, makeError(ctx, err)
	}
	answer := Answer{Missing: request.Count - len(made)}
	for _, m := range made {
		one := Image{
			ID: m.ID, URL: Path + m.ID, Width: m.Width, Height: m.Height, Type: m.Type,
			ExpiresAt: m.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		}
		if m.Prompt != prompt {
			one.Prompt = m.Prompt
		}
		answer.Images = append(answer.Images, one)
		call.Needs.Gallery.Show(registry.Image{
			ID: m.ID, URL: one.URL, Prompt: m.Prompt, Width: m.Width, Height: m.Height, ExpiresAt: m.ExpiresAt,
		})
	}
	return registry.Result{Data: answer}, nil
}

// userName returns a pseudonym of the user for the provider.
func userName(user string) string {
	if user == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("voicegw user " + user))
	return hex.EncodeToString(sum[:12])
}

// makeError converts a failure to an error for the model.
func makeError(ctx context.Context, err error) error {
	var failed *image.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &failed):
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return err // the images could not be stored: INTERNAL, and they have cost money
	}
	e := &registry.ToolError{Err: err}
	switch failed.Kind {
	case image.KindAuth:
		e.Type, e.Message = registry.ErrorAuth, "The image service rejects this gateway's key."
		e.Suggestion = "Tell the user that images are unavailable until the operator fixes this."
	case image.KindRateLimit:
		e.Type, e.Retryable, e.Message = registry.ErrorRateLimit, true, "The image service is at its rate limit or quota."
		if failed.RetryAfter > 0 {
			e.Details = map[string]any{"retry_after_seconds": int(math.Ceil(failed.RetryAfter.Seconds()))}
		}
	case image.KindTransient:
		e.Type, e.Retryable, e.Message = registry.ErrorTransient, true, "The image service is unavailable or failed."
		e.Suggestion = "Ask the user whether to try again."
		if failed.Unsure {
			e.PartialSideEffects = true
			e.Message = "The image service did not answer completely. Images may have been created and charged, but they are lost."
			e.Suggestion = "Tell the user, and ask whether to try again, which is charged again."
		}
	case image.KindRefused:
		e.Type, e.Message = registry.ErrorPermanent, withReason("The image service refuses to create this image", failed.Reason)
		e.Details, e.Suggestion = map[string]any{"refused": true}, "Tell the user, and offer to change what the image shows."
	case image.KindAnswer:
		e.Type, e.Message = registry.ErrorPermanent, "The image service sent no valid image, or one that is too large."
	default:
		e.Type, e.Message = registry.ErrorPermanent, withReason("The image service rejects this request", failed.Reason)
	}
	return e
}

func withReason(text, reason string) string {
	if reason == "" {
		return text + "."
	}
	return text + ". It says: " + reason
}
