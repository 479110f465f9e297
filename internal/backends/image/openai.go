package image

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"voicegw/internal/bounded"
)

// DefaultOpenAIModel is the model that OpenAI recommends for everyday images (developers.openai.com/api/docs/deprecations,
// read 2026-11-23).
const DefaultOpenAIModel = "gpt-image-2.6-flare"

// OpenAI makes images with OpenAI's image models, or with a server that is compatible with POST /v1/images/generations
// (https://developers.openai.com/api/reference/resources/images, read 2026-11-20). An OpenAI may be used concurrently.
type OpenAI struct {
	// Fixed after NewOpenAI.
	model string
	api   api
}

var _ Generator = (*OpenAI)(nil)

// NewOpenAI makes a generator. It does not connect.
func NewOpenAI(o ProviderOptions) *OpenAI {
	header := http.Header{"Content-Type": {"application/json"}}
	if o.APIKey != "" {
		header.Set("Authorization", "Bearer "+o.APIKey)
	}
	return &OpenAI{model: cmp.Or(o.Model, DefaultOpenAIModel), api: api{
		base: strings.TrimSuffix(cmp.Or(o.BaseURL, "https://api.openai.com/v1"), "/"), key: o.APIKey, header: header,
		client: bounded.Client(o.HTTPClient, limits(MaxAnswer)),
	}}
}

type openAIRequest struct {
	Model            string `json:"model"`
	Prompt           string `json:"prompt"`
	N                int    `json:"n"`
	Size             string `json:"size"`
	SafetyIdentifier string `json:"safety_identifier,omitempty"`
	ResponseFormat   string `json:"response_format,omitempty"`
}

// Generate implements Generator.
func (g *OpenAI) Generate(ctx context.Context, r Request) ([]Generated, error) {
	ask := openAIRequest{Model: g.model, Prompt: r.Prompt, N: r.Count, Size: fmt.Sprintf("%dx%d", r.Width, r.Height)}
	// The GPT image models always send base64 and refuse the parameter; others send addresses without it.
	if strings.HasPrefix(g.model, "gpt-image") || strings.HasPrefix(g.model, "chatgpt-image") {
		ask.SafetyIdentifier = r.User
	} else {
		ask.ResponseFormat = "b64_json"
	}
	var answer struct {
		Data []struct {
			Image         []byte `json:"b64_json"`
			RevisedPrompt string `json:"revised_prompt"`
		}
	}
	if err := g.api.post(ctx, "/images/generations", ask, &answer); err != nil {
		return nil, err
	}
	var images []Generated
	for i, one := range answer.Data[:min(r.Count, len(answer.Data))] {
		if len(one.Image) == 0 {
			// The answer may have an address instead, which could lead anywhere.
			return nil, &Error{Kind: KindAnswer, Err: fmt.Errorf("image %d has no b64_json", i)}
		}
		images = append(images, Generated{Data: one.Image, Prompt: one.RevisedPrompt})
	}
	if len(images) == 0 {
		return nil, noImage
	}
	return images, nil
}
