package completions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"voicegw/chat"
	"voicegw/internal/bounded"
)

// Options are what a Client may be told.
type Options struct {
	// BaseURL is the API's root, with its /v1. Empty means OpenAI's own.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none, as local servers like it.
	APIKey string
	// Model is required.
	Model string
	// Reasoning is sent as reasoning_effort; empty leaves it out. Which values there are
	// depends on the model.
	Reasoning string
	// MaxOutput is the most tokens of one answer. Zero means 2048.
	MaxOutput int
	// Retries is how often a request is made again after 408, 409, 429, 5xx or a broken
	// connection, before the first byte of an answer, with growing pauses or as
	// Retry-After says. Zero means 3; below zero, never.
	Retries int
	// HTTPClient sends the requests, within the bounds of docs/configuration.md. Nil
	// means one over bounded.Shared.
	HTTPClient *http.Client
}

// Client is a chat.Model. It may be used by any number of goroutines.
type Client struct {
	// Fixed after New.
	options Options
	service openai.Client
}

var _ chat.Model = (*Client)(nil)

// The limits of one answer.
const (
	maxText  = 256 << 10 // bytes of text
	maxCalls = 32
	maxArgs  = 256 << 10 // bytes of arguments, of all calls
)

// linger is how long the usage may take that follows a whole answer. A server that sends none
// may leave the connection open.
const linger = 3 * time.Second

// limits bound what is read of an answer. An event is a few words, or the arguments of a
// call; what it is made of is small, for the library makes a kilobyte of each element.
var limits = bounded.Limits{
	Service: "the chat model", Format: bounded.Events, Bytes: 32 << 20, Piece: 1 << 20, Elements: 4000,
	Idle: 2 * time.Minute, Whole: 15 * time.Minute,
}

// New makes a Client. It does not connect.
func New(o Options) (*Client, error) {
	if o.Model == "" {
		return nil, errors.New("completions: no model is named; set chat.model")
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.openai.com/v1"
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 2048
	}
	if o.Retries == 0 {
		o.Retries = 3
	}
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
		option.WithMaxRetries(max(o.Retries, 0)),
		option.WithHTTPClient(bounded.Client(o.HTTPClient, limits)),
		option.WithMiddleware(normalise),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	// Not NewClient, which reads keys and addresses from the environment.
	return &Client{options: o, service: openai.Client{Options: options}}, nil
}

// Complete implements chat.Model.
func (c *Client) Complete(ctx context.Context, p chat.Prompt, delta func(string)) (chat.Reply, error) {
	// The stream's reader ends with the request's context, whatever ends this function.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var raw *http.Response
	options := []option.RequestOption{option.WithJSONSet("stream", true)}
	if len(p.ToolChoice) > 0 && !p.ToolsOff {
		options = append(options, option.WithJSONSet("tool_choice", p.ToolChoice))
	}
	for name, value := range p.Settings {
		options = append(options, option.WithJSONSet(name, value))
	}
	if err := c.service.Post(ctx, "chat/completions", c.params(p), &raw, options...); err != nil {
		return chat.Reply{}, c.failure(ctx, err, false)
	}
	defer func() { _ = raw.Body.Close() }() // what could be read was read
	a := answer{delta: delta, from: c.from()}
	a.last = func() { time.AfterFunc(linger, cancel) }
	if err := a.read(raw.Body); err != nil {
		return chat.Reply{}, c.failure(ctx, err, a.begun)
	}
	return a.reply(), nil
}

// normalise makes of a refusal what the library reads, and keeps it from asking again where
// that cannot help. It is an option.Middleware.
func normalise(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body) // which internal/bounded bounds
	_ = resp.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // failure looks for what it is
	}
	said, _ := readProblem(body)
	resp.Body = io.NopCloser(bytes.NewReader(said.normal()))
	if k := said.kind(resp.StatusCode); k != chat.KindRateLimit && k != chat.KindUnavailable {
		resp.Header.Set("X-Should-Retry", "false")
	}
	return resp, nil
}

// params is a prompt as the wire has it.
func (c *Client) params(p chat.Prompt) openai.ChatCompletionNewParams {
	out := openai.ChatCompletionNewParams{
		Model:         c.options.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	most := int64(c.options.MaxOutput)
	if p.MaxOutput > 0 {
		most = min(most, int64(p.MaxOutput))
	}
	if newLimit(c.options.BaseURL) {
		out.MaxCompletionTokens = param.NewOpt(most)
	} else {
		out.MaxTokens = param.NewOpt(most) // what compatible servers know
	}
	out.ReasoningEffort = shared.ReasoningEffort(c.options.Reasoning)
	if p.User != "" {
		out.User = param.NewOpt(p.User)
	}
	calling := calling(p.Messages)
	for i, m := range p.Messages {
		out.Messages = append(out.Messages, c.message(m, calling[i]))
	}
	for _, t := range p.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: parameters(t.Parameters)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		if t.Strict != nil {
			f.Strict = param.NewOpt(*t.Strict)
		}
		out.Tools = append(out.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if p.Parallel != nil && len(p.Tools) > 0 {
		out.ParallelToolCalls = param.NewOpt(*p.Parallel)
	}
	if p.ToolsOff && len(p.Tools) > 0 {
		out.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("none")}
	}
	return out
}

// newLimit says whether a server takes max_completion_tokens alone: OpenAI's newer models
// and Azure's refuse max_tokens.
func newLimit(baseURL string) bool {
	return strings.Contains(baseURL, "api.openai.com") || strings.Contains(baseURL, ".openai.azure.com")
}

// parameters is a schema as the library takes it, written as it was.
func parameters(schema json.RawMessage) shared.FunctionParameters {
	var p shared.FunctionParameters
	if json.Unmarshal(schema, &p) != nil {
		return nil // the registry has checked it: this cannot happen
	}
	return p
}

// message is a message as the wire has it; calling says that tools were called in its turn.
func (c *Client) message(m chat.Message, calling bool) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case chat.RoleSystem:
		return openai.SystemMessage(m.Text)
	case chat.RoleTool:
		return openai.ToolMessage(m.Text, m.CallID)
	case chat.RoleAssistant:
		out := openai.ChatCompletionAssistantMessageParam{}
		if m.Text != "" || len(m.Calls) == 0 {
			out.Content.OfString = param.NewOpt(m.Text)
		}
		if extra := c.unpack(m.Extra, messageExtras, calling); extra != nil {
			out.SetExtraFields(extra)
		}
		for _, call := range m.Calls {
			made := &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: call.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: string(call.Args)},
			}
			if extra := c.unpack(call.Extra, callExtras, calling); extra != nil {
				made.SetExtraFields(extra)
			}
			out.ToolCalls = append(out.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: made})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &out}
	default:
		if len(m.Parts) > 0 {
			return openai.UserMessage(parts(m.Parts))
		}
		return openai.UserMessage(m.Text)
	}
}

// parts are the pieces of a message as the wire has them.
func parts(pieces []chat.Part) []openai.ChatCompletionContentPartUnionParam {
	var out []openai.ChatCompletionContentPartUnionParam
	for _, p := range pieces {
		switch {
		case p.Image != "":
			out = append(out, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: p.Image, Detail: p.Detail}))
		case p.Text != "": // an empty one is refused by providers
			out = append(out, openai.TextContentPart(p.Text))
		}
	}
	return out
}

// failure classes what the library reports.
func (c *Client) failure(ctx context.Context, err error, begun bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := &chat.ModelError{Kind: chat.KindUnavailable, Begun: begun}
	if over, ok := bounded.As(err); ok {
		out.Err, out.Status = over, over.Status
		if out.Kind = chat.KindProtocol; over.Passing() {
			out.Kind = chat.KindUnavailable
		}
		if over.Bound == bounded.BoundFailure {
			out.Kind = kindOfStatus(over.Status)
		}
		return out
	}
	var api *openai.Error
	var told *streamed
	var bad *unreadable
	switch {
	case errors.As(err, &api):
		said := problem{Message: api.Message, Type: api.Type, Code: api.Code, Param: api.Param}
		out.Status, out.Kind, out.Param = api.StatusCode, said.kind(api.StatusCode), said.Param
		// Its words alone, not the request, which the error holds.
		out.Err = c.words(said.Message, http.StatusText(api.StatusCode))
		if api.Response != nil {
			out.RetryAfter = retryAfter(api.Response.Header, time.Now())
		}
	case errors.As(err, &told):
		out.Kind, out.Param = told.kind(0), told.Param
		out.Err = c.words(told.Message, "the provider broke its answer off with an error")
	case errors.As(err, &bad):
		out.Kind, out.Err = chat.KindProtocol, c.words(bad.Error(), "")
	default:
		out.Err = c.cause(err)
		if garbled(err) {
			out.Kind = chat.KindProtocol
		}
	}
	return out
}

// garbled says that what came over the wire is no JSON, or none of the shape.
func garbled(err error) bool {
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &shape) || errors.Is(err, bufio.ErrTooLong)
}

// cause is what went wrong on the way, without the address: keys stand in some.
func (c *Client) cause(err error) error {
	var at *url.Error
	for errors.As(err, &at) { // a proxy's stands in the client's
		err = at.Err
	}
	return c.words(err.Error(), "the connection broke")
}

// words are a provider's, without the key that some repeat and of a bounded length.
func (c *Client) words(said, instead string) error {
	if said = strings.TrimSpace(said); said == "" {
		said = instead
	}
	if key := c.options.APIKey; key != "" {
		said = strings.ReplaceAll(said, key, "…")
	}
	return errors.New(shorten(said))
}

func shorten(s string) string {
	if len(s) > 500 {
		return strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
