package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"voicegw/internal/bounded"
)

// DefaultGoogleModel is the default of GoogleOptions.Model (ai.google.dev/gemini-api/docs/deprecations, read
// 2026-11-23).
const DefaultGoogleModel = "gemini-3.1-flash-image"

// GoogleOptions configure a Google.
type GoogleOptions struct {
	// BaseURL is the API's root, without a path. Empty means Google's: the Gemini API, or Vertex AI for Imagen.
	BaseURL string
	// APIKey is required.
	APIKey string
	// Model is an image model of Gemini, or of Imagen if its name begins with "imagen". Empty means DefaultGoogleModel.
	Model string
	// HTTPClient sends the requests, within the bounds of docs/configuration.md. Nil means one over bounded.Shared.
	HTTPClient *http.Client
}

// Google makes images with Gemini's image models by models/{model}:generateContent
// (https://ai.google.dev/gemini-api/docs/image-generation, read 2026-11-20), or with Imagen by :predict
// (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/imagen-api, read 2026-11-20). Imagen is
// no longer part of the Gemini API; it needs Vertex AI and a key of its express mode. A Google may be used
// concurrently.
type Google struct {
	// Fixed after NewGoogle.
	opts   GoogleOptions
	client *genai.Client
	// reading is a lock around the reading and decoding of an answer; it is never closed.
	reading chan struct{}
}

// Bounds of an answer in bytes. The SDK needs several times that to decode it. A Gemini model's answer has one image,
// Imagen's up to four.
const (
	maxAnswer     = 4 << 20
	maxPrediction = 8 << 20
)

var _ Generator = (*Google)(nil)

// NewGoogle makes a generator. It does not connect.
func NewGoogle(ctx context.Context, o GoogleOptions) (*Google, error) {
	if o.APIKey == "" {
		return nil, errors.New("image: the Google API needs a key")
	}
	o.Model = cmp.Or(o.Model, DefaultGoogleModel)
	backend, most := genai.BackendGeminiAPI, int64(maxAnswer)
	if imagen(o.Model) {
		backend, most = genai.BackendVertexAI, maxPrediction
	}
	if o.BaseURL == "" {
		// Set here, because the SDK would read it from the environment.
		o.BaseURL = "https://generativelanguage.googleapis.com/"
		if backend == genai.BackendVertexAI {
			o.BaseURL = "https://aiplatform.googleapis.com/"
		}
	}
	reading := make(chan struct{}, 1)
	// An image costs money, so the SDK must not retry.
	once := int32(1)
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: o.APIKey, Backend: backend, HTTPClient: inTurn(bounded.Client(o.HTTPClient, limits(most)), reading),
		HTTPOptions: genai.HTTPOptions{
			BaseURL: strings.TrimSuffix(o.BaseURL, "/") + "/", RetryOptions: &genai.HTTPRetryOptions{Attempts: &once},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("image: %s", oneLine(err.Error(), o.APIKey)) // the error contains the key
	}
	return &Google{opts: o, client: client, reading: reading}, nil
}

func imagen(model string) bool {
	return strings.HasPrefix(model[strings.LastIndexByte(model, '/')+1:], "imagen")
}

// Generate implements Generator.
func (g *Google) Generate(ctx context.Context, r Request) ([]Generated, error) {
	if imagen(g.opts.Model) {
		return g.predict(ctx, r)
	}
	return g.generateAll(ctx, r)
}

// predict asks Imagen, which makes all images in one answer.
func (g *Google) predict(ctx context.Context, r Request) ([]Generated, error) {
	ctx, done := g.turn(ctx)
	defer done()
	ctx, unsent := bounded.Watch(ctx)
	answer, err := g.client.Models.GenerateImages(ctx, g.opts.Model, r.Prompt, &genai.GenerateImagesConfig{
		NumberOfImages: int32(r.Count), AspectRatio: nearest(r.Width, r.Height, imagenShapes),
		OutputMIMEType: TypePNG, IncludeRAIReason: true,
	})
	if err != nil {
		return nil, g.failure(ctx, err, unsent)
	}
	var images []Generated
	reason := ""
	for _, one := range answer.GeneratedImages {
		if one == nil {
			continue
		}
		if one.Image != nil && len(one.Image.ImageBytes) > 0 {
			images = append(images, Generated{Data: one.Image.ImageBytes, Prompt: one.EnhancedPrompt})
		} else if one.RAIFilteredReason != "" {
			reason = one.RAIFilteredReason
		}
	}
	switch {
	case len(images) > 0:
		return images[:min(len(images), r.Count)], nil
	case reason != "" || len(answer.GeneratedImages) == 0:
		// Imagen refuses a prompt with an answer without predictions.
		return nil, &Error{Kind: KindRefused, Reason: oneLine(reason, g.opts.APIKey)}
	default:
		return nil, noImage
	}
}

var noImage = &Error{Kind: KindAnswer, Err: errors.New("the answer contains no image")}

// generateAll asks a Gemini model once for each image, concurrently, because an answer contains one image. It fails
// only if all requests fail.
func (g *Google) generateAll(ctx context.Context, r Request) ([]Generated, error) {
	made := make([]Generated, r.Count)
	failed := make([]error, r.Count)
	var asking sync.WaitGroup
	for i := range r.Count {
		asking.Go(func() { made[i], failed[i] = g.generate(ctx, r) })
	}
	asking.Wait()
	var images []Generated
	for i := range made {
		if failed[i] == nil {
			images = append(images, made[i])
		}
	}
	if len(images) > 0 {
		return images, nil
	}
	return nil, failed[0]
}

func (g *Google) generate(ctx context.Context, r Request) (Generated, error) {
	ctx, done := g.turn(ctx)
	defer done()
	ctx, unsent := bounded.Watch(ctx)
	answer, err := g.client.Models.GenerateContent(ctx, g.opts.Model, genai.Text(r.Prompt), &genai.GenerateContentConfig{
		ResponseModalities: []string{string(genai.ModalityText), string(genai.ModalityImage)},
		ImageConfig:        &genai.ImageConfig{AspectRatio: nearest(r.Width, r.Height, geminiShapes)},
	})
	if err != nil {
		return Generated{}, g.failure(ctx, err, unsent)
	}
	if f := answer.PromptFeedback; f != nil && f.BlockReason != "" {
		return Generated{}, g.refused(f.BlockReasonMessage, string(f.BlockReason))
	}
	said := ""
	for _, c := range answer.Candidates {
		if c == nil || c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			if p == nil || p.Thought {
				continue
			}
			if p.InlineData != nil && len(p.InlineData.Data) > 0 {
				return Generated{Data: p.InlineData.Data}, nil
			}
			said += p.Text
		}
	}
	if len(answer.Candidates) > 0 && answer.Candidates[0] != nil {
		if c := answer.Candidates[0]; googleRefusals[c.FinishReason] {
			return Generated{}, g.refused(c.FinishMessage, said, string(c.FinishReason))
		}
	}
	if said != "" { // the model explains its refusal
		return Generated{}, g.refused(said)
	}
	return Generated{}, noImage
}

// googleRefusals are the finish reasons of moderation.
var googleRefusals = map[genai.FinishReason]bool{
	genai.FinishReasonSafety: true, genai.FinishReasonImageSafety: true, genai.FinishReasonProhibitedContent: true,
	genai.FinishReasonImageProhibitedContent: true, genai.FinishReasonBlocklist: true, genai.FinishReasonRecitation: true,
	genai.FinishReasonImageRecitation: true, genai.FinishReasonSPII: true,
}

// refused returns a refusal with the first reason that is not empty.
func (g *Google) refused(reasons ...string) *Error {
	for _, reason := range reasons {
		if reason != "" {
			return &Error{Kind: KindRefused, Reason: oneLine(reason, g.opts.APIKey)}
		}
	}
	return &Error{Kind: KindRefused}
}

// failure classifies an error of the SDK.
func (g *Google) failure(ctx context.Context, err error, unsent func() bool) error {
	if ctx.Err() != nil {
		return ended(ctx, unsent())
	}
	if over := overBound(err); over != nil {
		return over
	}
	var refused genai.APIError
	if !errors.As(err, &refused) {
		return &Error{Kind: KindTransient, Unsure: !unsent(), Err: fmt.Errorf("asking %s: %w", g.opts.BaseURL, err)}
	}
	kind := kindOf(refused.Code)
	if strings.Contains(refused.Message, "API key not valid") { // with status 400
		kind = KindAuth
	}
	return &Error{
		Kind: kind, Status: refused.Code, RetryAfter: retryDelay(refused.Details), Reason: oneLine(refused.Message, g.opts.APIKey),
	}
}

// retryDelay reads google.rpc.RetryInfo, Google's equivalent of the header Retry-After.
func retryDelay(details []map[string]any) time.Duration {
	for _, d := range details {
		if text, ok := d["retryDelay"].(string); ok {
			if delay, err := time.ParseDuration(text); err == nil && delay > 0 {
				return delay
			}
		}
	}
	return 0
}

type shape struct {
	name          string
	width, height float64
}

// The shapes of the models.
var (
	imagenShapes = []shape{{"1:1", 1, 1}, {"3:4", 3, 4}, {"4:3", 4, 3}, {"9:16", 9, 16}, {"16:9", 16, 9}}
	geminiShapes = append([]shape{{"2:3", 2, 3}, {"3:2", 3, 2}, {"21:9", 21, 9}}, imagenShapes...)
)

// nearest returns the name of the shape that is most similar to a size.
func nearest(width, height int, shapes []shape) string {
	best, least := "", 0.0
	for _, s := range shapes {
		// off is the ratio of the two shapes' ratios.
		off := (float64(width) * s.height) / (float64(height) * s.width)
		if off < 1 {
			off = 1 / off
		}
		if best == "" || off < least {
			best, least = s.name, off
		}
	}
	return best
}

// Google makes images concurrently, but the SDK reads their answers one after the other, because it needs several times
// an answer's size. A turn begins after the head of an answer and ends when the SDK has decoded the answer.

type turnKey struct{}

// turn returns a context for one request, and a function that ends its turn.
func (g *Google) turn(ctx context.Context) (context.Context, func()) {
	held := &atomic.Bool{}
	return context.WithValue(ctx, turnKey{}, held), func() {
		if held.Load() {
			<-g.reading
		}
	}
}

// inTurn makes the answers of c wait for their turn.
func inTurn(c *http.Client, reading chan struct{}) *http.Client {
	c.Transport = &queue{c.Transport, reading}
	return c
}

type queue struct {
	http.RoundTripper
	reading chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (q *queue) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := q.RoundTripper.RoundTrip(r)
	held, ok := r.Context().Value(turnKey{}).(*atomic.Bool)
	if err != nil || !ok {
		return resp, err
	}
	select {
	case q.reading <- struct{}{}:
		held.Store(true)
		return resp, nil
	case <-r.Context().Done():
		_ = resp.Body.Close() // unread
		return nil, context.Cause(r.Context())
	}
}
