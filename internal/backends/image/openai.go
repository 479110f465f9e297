package image

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"voicegw/internal/bounded"
)

// DefaultOpenAIModel is the default of OpenAIOptions.Model: the model that OpenAI recommends for everyday images
// (developers.openai.com/api/docs/deprecations, read 2026-11-23).
const DefaultOpenAIModel = "gpt-image-2.6-flare"

// OpenAIOptions configure an OpenAI.
type OpenAIOptions struct {
	// BaseURL is the API's root, with its /v1. Empty means OpenAI's.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none, for local servers.
	APIKey string
	// Model is the image model. Empty means DefaultOpenAIModel.
	Model string
	// HTTPClient sends the requests, within the bounds of docs/configuration.md. Nil means one over bounded.Shared.
	HTTPClient *http.Client
}

// OpenAI makes images with OpenAI's image models, or with a server that is compatible with POST /v1/images/generations
// (https://developers.openai.com/api/reference/resources/images, read 2026-11-20). An OpenAI may be used concurrently.
type OpenAI struct {
	// Fixed after NewOpenAI.
	opts    OpenAIOptions
	service openai.ImageService
}

var _ Generator = (*OpenAI)(nil)

// NewOpenAI makes a generator. It does not connect.
func NewOpenAI(o OpenAIOptions) *OpenAI {
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.openai.com/v1")
	o.Model = cmp.Or(o.Model, DefaultOpenAIModel)
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
		// An image costs money, so the SDK must not retry.
		option.WithMaxRetries(0),
		option.WithHTTPClient(bounded.Client(o.HTTPClient, limits(MaxAnswer))),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	return &OpenAI{opts: o, service: openai.NewImageService(options...)}
}

// Generate implements Generator.
func (g *OpenAI) Generate(ctx context.Context, r Request) ([]Generated, error) {
	params := openai.ImageGenerateParams{
		Prompt: r.Prompt, Model: g.opts.Model, N: openai.Int(int64(r.Count)),
		Size: openai.ImageGenerateParamsSize(strconv.Itoa(r.Width) + "x" + strconv.Itoa(r.Height)),
	}
	// The GPT image models always send base64 and refuse the parameter; others send addresses without it.
	if gptImage(g.opts.Model) {
		if r.User != "" {
			params.SafetyIdentifier = openai.String(r.User)
		}
	} else {
		params.ResponseFormat = openai.ImageGenerateParamsResponseFormatB64JSON
	}
	// The SDK's own type takes several times as much memory.
	var data []byte
	ctx, unsent := bounded.Watch(ctx)
	if _, err := g.service.Generate(ctx, params, option.WithResponseBodyInto(&data)); err != nil {
		return nil, g.failure(ctx, err, unsent)
	}
	var answer struct {
		Data []struct {
			Image         []byte `json:"b64_json"`
			RevisedPrompt string `json:"revised_prompt"`
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		kind := KindTransient // the answer may be incomplete
		if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
			kind = KindAnswer
		}
		return nil, &Error{Kind: kind, Unsure: true, Err: fmt.Errorf("the answer is invalid: %w", err)}
	}
	var images []Generated
	for i, one := range answer.Data {
		if i == r.Count {
			break
		}
		if len(one.Image) == 0 {
			// The answer may have an address instead, which could lead anywhere.
			return nil, &Error{Kind: KindAnswer, Err: fmt.Errorf("image %d has no b64_json", i)}
		}
		images = append(images, Generated{Data: one.Image, Prompt: one.RevisedPrompt})
	}
	if len(images) == 0 {
		return nil, &Error{Kind: KindAnswer, Err: errors.New("the answer contains no image")}
	}
	return images, nil
}

func gptImage(model string) bool {
	return strings.HasPrefix(model, "gpt-image") || strings.HasPrefix(model, "chatgpt-image")
}

// openAIRefusals are the error codes of moderation.
var openAIRefusals = map[string]bool{"moderation_blocked": true, "content_policy_violation": true}

// failure classifies an error of the SDK.
func (g *OpenAI) failure(ctx context.Context, err error, unsent func() bool) error {
	if ctx.Err() != nil {
		return ended(ctx, unsent())
	}
	if over := overBound(err); over != nil {
		return over
	}
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return &Error{Kind: KindTransient, Unsure: !unsent(), Err: fmt.Errorf("asking %s: %w", g.opts.BaseURL, err)}
	}
	e := &Error{
		Kind: kindOf(refused.StatusCode), Status: refused.StatusCode,
		Reason: oneLine(refused.Message, g.opts.APIKey),
	}
	if openAIRefusals[refused.Code] {
		e.Kind = KindRefused
	}
	if refused.Code == "insufficient_quota" || refused.Code == "billing_hard_limit_reached" {
		e.Kind = KindRateLimit
	}
	if refused.Response != nil {
		e.RetryAfter = bounded.RetryAfter(refused.Response.Header, time.Now())
	}
	return e
}
