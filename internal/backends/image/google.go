package image

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"voicegw/internal/bounded"
)

// DefaultGoogleModel is from ai.google.dev/gemini-api/docs/deprecations, read 2026-11-23.
const DefaultGoogleModel = "gemini-3.1-flash-image"

// Google makes images with Gemini's image models by models/{model}:generateContent
// (https://ai.google.dev/gemini-api/docs/image-generation, read 2026-11-20), or, if the model's name begins with
// "imagen", with Imagen by :predict
// (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/imagen-api, read 2026-11-20). Imagen is
// no longer part of the Gemini API; it needs Vertex AI and a key of its express mode. A Google may be used
// concurrently.
type Google struct {
	// Fixed after NewGoogle.
	imagen bool
	path   string // of the model
	api    api
}

// Bounds of an answer in bytes. A Gemini model's answer has one image, Imagen's up to four.
const (
	maxAnswer     = 4 << 20
	maxPrediction = 8 << 20
)

var _ Generator = (*Google)(nil)

// NewGoogle makes a generator. It does not connect.
func NewGoogle(o ProviderOptions) (*Google, error) {
	if o.APIKey == "" {
		return nil, errors.New("image: the Google API needs a key")
	}
	model := cmp.Or(o.Model, DefaultGoogleModel)
	g := &Google{imagen: strings.HasPrefix(model[strings.LastIndexByte(model, '/')+1:], "imagen")}
	base, most := "https://generativelanguage.googleapis.com", int64(maxAnswer)
	if g.imagen {
		base, most = "https://aiplatform.googleapis.com", maxPrediction
		if !strings.Contains(model, "/") {
			model = "publishers/google/models/" + model
		}
		g.path = "/v1beta1/" + model + ":predict"
	} else {
		g.path = "/v1beta/models/" + strings.TrimPrefix(model, "models/") + ":generateContent"
	}
	g.api = api{
		base: strings.TrimSuffix(cmp.Or(o.BaseURL, base), "/"), key: o.APIKey,
		header: http.Header{"Content-Type": {"application/json"}, "X-Goog-Api-Key": {o.APIKey}},
		client: bounded.Client(o.HTTPClient, limits(most)),
	}
	return g, nil
}

// Generate implements Generator.
func (g *Google) Generate(ctx context.Context, r Request) ([]Generated, error) {
	if g.imagen {
		return g.predict(ctx, r)
	}
	return g.generateAll(ctx, r)
}

type object = map[string]any

// predict asks Imagen, which makes all images in one answer.
func (g *Google) predict(ctx context.Context, r Request) ([]Generated, error) {
	var answer struct {
		Predictions []struct {
			BytesBase64Encoded []byte
			Prompt             string
			RAIFilteredReason  string
		}
	}
	err := g.api.post(ctx, g.path, object{
		"instances": []object{{"prompt": r.Prompt}},
		"parameters": object{"sampleCount": r.Count, "aspectRatio": nearest(r.Width, r.Height, imagenShapes),
			"outputOptions": object{"mimeType": TypePNG}, "includeRaiReason": true},
	}, &answer)
	if err != nil {
		return nil, err
	}
	var images []Generated
	reason := ""
	for _, one := range answer.Predictions {
		if len(one.BytesBase64Encoded) > 0 {
			images = append(images, Generated{Data: one.BytesBase64Encoded, Prompt: one.Prompt})
		} else {
			reason = cmp.Or(one.RAIFilteredReason, reason)
		}
	}
	switch {
	case len(images) > 0:
		return images[:min(len(images), r.Count)], nil
	case reason != "" || len(answer.Predictions) == 0:
		// Imagen refuses a prompt with an answer without predictions.
		return nil, g.refused(reason)
	default:
		return nil, noImage
	}
}

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

type content struct {
	PromptFeedback struct{ BlockReason, BlockReasonMessage string }
	Candidates     []struct {
		Content struct {
			Parts []struct {
				Text       string
				Thought    bool
				InlineData struct{ Data []byte }
			}
		}
		FinishReason, FinishMessage string
	}
}

func (g *Google) generate(ctx context.Context, r Request) (Generated, error) {
	var answer content
	err := g.api.post(ctx, g.path, object{
		"contents": []object{{"role": "user", "parts": []object{{"text": r.Prompt}}}},
		"generationConfig": object{"responseModalities": []string{"TEXT", "IMAGE"},
			"imageConfig": object{"aspectRatio": nearest(r.Width, r.Height, geminiShapes)}},
	}, &answer)
	if err != nil {
		return Generated{}, err
	}
	if f := answer.PromptFeedback; f.BlockReason != "" {
		return Generated{}, g.refused(cmp.Or(f.BlockReasonMessage, f.BlockReason))
	}
	said := ""
	for _, c := range answer.Candidates {
		for _, p := range c.Content.Parts {
			if p.Thought {
				continue
			}
			if len(p.InlineData.Data) > 0 {
				return Generated{Data: p.InlineData.Data}, nil
			}
			said += p.Text
		}
	}
	if len(answer.Candidates) > 0 && googleRefusals[answer.Candidates[0].FinishReason] {
		c := answer.Candidates[0]
		return Generated{}, g.refused(cmp.Or(c.FinishMessage, said, c.FinishReason))
	}
	if said != "" { // the model explains its refusal
		return Generated{}, g.refused(said)
	}
	return Generated{}, noImage
}

// googleRefusals are the finish reasons of moderation.
var googleRefusals = map[string]bool{
	"SAFETY": true, "IMAGE_SAFETY": true, "PROHIBITED_CONTENT": true, "IMAGE_PROHIBITED_CONTENT": true, "BLOCKLIST": true,
	"RECITATION": true, "IMAGE_RECITATION": true, "SPII": true,
}

func (g *Google) refused(reason string) *Error {
	return &Error{Kind: KindRefused, Reason: oneLine(reason, g.api.key)}
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
