package textmodel

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"voicegw/internal/bounded"
	"voicegw/internal/textutil"
	"voicegw/transport"
)

// Options configures a Client.
type Options struct {
	BaseURL   string // the API's root, including /v1; empty means OpenAI's
	APIKey    string // the bearer token; empty sends none, as local servers expect
	Model     string // the model's name; required
	Reasoning string // reasoning_effort, with values that depend on the model; empty leaves it out
	MaxOutput int    // limits the tokens of an answer; zero means 2048
	// Retries is the number of retries after status 408, 409, 429, 5xx or a broken connection, as long as no byte of
	// an answer has arrived, with growing pauses or those of Retry-After. Zero means 3; negative means none.
	Retries    int
	HTTPClient *http.Client // sends the requests; nil means a client over bounded.Shared
}

// Client is a chat.Model. It is safe for concurrent use.
type Client struct {
	// Fixed after New.
	options Options
	service openai.Client
}

var _ Model = (*Client)(nil)

// The limits of one answer.
const (
	maxText  = 256 << 10 // bytes of text
	maxCalls = 32
	maxArgs  = 256 << 10 // bytes of arguments, of all calls
)

// linger is how long to wait for the usage after a complete answer: some servers send none and stay connected.
const linger = 3 * time.Second

// limits limits an answer. Elements are limited too, because the library needs a kilobyte for each.
var limits = bounded.Limits{
	Service: "the chat model", Format: bounded.Events, Bytes: 32 << 20, Piece: 1 << 20, Elements: 4000,
	Idle: 2 * time.Minute, Whole: 15 * time.Minute,
}

// New returns a Client. It does not connect.
func New(o Options) (*Client, error) {
	if o.Model == "" {
		return nil, errors.New("completions: no model; set chat.model")
	}
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.openai.com/v1")
	if o.MaxOutput <= 0 {
		o.MaxOutput = 2048
	}
	o.Retries = cmp.Or(o.Retries, 3)
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
		option.WithMaxRetries(max(o.Retries, 0)),
		option.WithHTTPClient(bounded.Client(o.HTTPClient, limits)),
		option.WithMiddleware(normalise),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	// NewClient would also read keys and addresses from the environment.
	return &Client{options: o, service: openai.Client{Options: options}}, nil
}

// Complete implements chat.Model.
func (c *Client) Complete(ctx context.Context, p Prompt, delta func(string)) (Reply, error) {
	// The stream's reader stops with the request's context.
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
		return Reply{}, c.failure(ctx, err, false)
	}
	defer func() { _ = raw.Body.Close() }() // everything needed has been read
	a := answer{delta: delta, from: c.from()}
	a.last = func() { time.AfterFunc(linger, cancel) }
	if err := a.read(raw.Body); err != nil {
		return Reply{}, c.failure(ctx, err, a.begun)
	}
	return a.reply(), nil
}

// normalise rewrites an error response into the form that the library reads, and prevents vain retries.
func normalise(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body) // limited by internal/bounded
	_ = resp.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // failure classifies it
	}
	said, _ := readProblem(body)
	resp.Body = io.NopCloser(bytes.NewReader(said.normal()))
	if !said.kind(resp.StatusCode).Retryable() {
		resp.Header.Set("X-Should-Retry", "false")
	}
	return resp, nil
}

func (c *Client) params(p Prompt) openai.ChatCompletionNewParams {
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
		out.MaxTokens = param.NewOpt(most) // the name that compatible servers know
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

// newLimit reports whether a server accepts only max_completion_tokens, as OpenAI's newer models and Azure's do.
func newLimit(baseURL string) bool {
	return strings.Contains(baseURL, "api.openai.com") || strings.Contains(baseURL, ".openai.azure.com")
}

// parameters converts a schema to the library's type, which encodes to the same JSON.
func parameters(schema json.RawMessage) shared.FunctionParameters {
	var p shared.FunctionParameters
	if json.Unmarshal(schema, &p) != nil {
		return nil // cannot happen: the registry has validated it
	}
	return p
}

// message converts a message for a request; calling means that its turn called tools.
func (c *Client) message(m Message, calling bool) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case RoleSystem:
		return openai.SystemMessage(m.Text)
	case RoleTool:
		return openai.ToolMessage(m.Text, m.CallID)
	case RoleAssistant:
		out := openai.ChatCompletionAssistantMessageParam{}
		if m.Text != "" || len(m.Calls) == 0 {
			out.Content.OfString = param.NewOpt(m.Text)
		}
		if extra := c.unpack(m.Extra, messageExtras, calling); extra != nil {
			out.SetExtraFields(extra)
		}
		for _, call := range m.Calls {
			made := &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: call.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name,
					Arguments: string(call.Args)},
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

func parts(pieces []Part) []openai.ChatCompletionContentPartUnionParam {
	var out []openai.ChatCompletionContentPartUnionParam
	for _, p := range pieces {
		switch {
		case p.Image != "":
			out = append(out, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: p.Image, Detail: p.Detail}))
		case p.Text != "": // providers reject an empty text
			out = append(out, openai.TextContentPart(p.Text))
		}
	}
	return out
}

func (c *Client) failure(ctx context.Context, err error, begun bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := &Error{Kind: transport.KindRetry, Begun: begun}
	if over, ok := bounded.As(err); ok {
		out.Err, out.Status = over, over.Status
		if out.Kind = transport.KindUnreadable; over.Passing() {
			out.Kind = transport.KindRetry
		}
		if over.Bound == bounded.BoundFailure {
			out.Kind = transport.KindOfStatus(over.Status)
		}
		return out
	}
	var api *openai.Error
	var told problem
	var bad unreadable
	switch {
	case errors.As(err, &api):
		said := problem{Message: api.Message, Type: api.Type, Code: api.Code, Param: api.Param}
		out.Status, out.Kind, out.Param = api.StatusCode, said.kind(api.StatusCode), said.Param
		// Only the message: the error also holds the request.
		out.Err = c.words(said.Message, http.StatusText(api.StatusCode))
		if api.Response != nil {
			out.RetryAfter = retryAfter(api.Response.Header, time.Now())
		}
		if out.RetryAfter == 0 {
			out.RetryAfter = transport.WaitIn(said.Message)
		}
	case errors.As(err, &told):
		out.Kind, out.Param = told.kind(0), told.Param
		out.Err = c.words(told.Message, "the provider ended its answer with an error")
	case errors.As(err, &bad):
		out.Kind, out.Err = transport.KindUnreadable, c.words(bad.Error(), "")
	default:
		out.Err = c.cause(err)
		if garbled(err) {
			out.Kind = transport.KindUnreadable
		}
	}
	return out
}

// garbled reports whether an error means invalid JSON, or JSON of the wrong shape, from the server.
func garbled(err error) bool {
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &shape) || errors.Is(err, bufio.ErrTooLong)
}

// cause returns the cause of a network error without the URL, which may contain a key.
func (c *Client) cause(err error) error {
	var at *url.Error
	for errors.As(err, &at) { // a proxy's error is inside the client's
		err = at.Err
	}
	return c.words(err.Error(), "the connection broke")
}

// words returns a provider's message, shortened and without the key, which some providers repeat.
func (c *Client) words(said, instead string) error {
	if said = strings.TrimSpace(said); said == "" {
		said = instead
	}
	if key := c.options.APIKey; key != "" {
		said = strings.ReplaceAll(said, key, "…")
	}
	return errors.New(textutil.Shorten(said, maxSaid))
}

const maxSaid = 500

// seeing matches the chat models that accept images (developers.openai.com/api/docs/models,
// ai.google.dev/gemini-api/docs/models and docs.claude.com/en/docs/about-claude/models, read 2026-11-23). For other
// models, the operator sets chat.vision.
var seeing = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4-turbo`,
	`gpt-5|gpt-6`,
	`o1$|o1-2|o3$|o3-2|o3-pro|o4-mini`, // not o1-mini, o1-preview and o3-mini
	`gemini-(?:1\.5|[2-9])`,
	`claude-(?:3|opus|sonnet|haiku|[4-9])`,
}, "|") + `)`)

// notSeeing matches the exceptions: models that accept no images, or serve another purpose.
var notSeeing = regexp.MustCompile(`-(?:audio|realtime|search|transcribe|tts|embedding)|claude-3-5-haiku`)

// Sees reports whether a chat model is known to accept images. The name may have a path, as in openai/… or models/….
func Sees(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return seeing.MatchString(name) && !notSeeing.MatchString(name)
}

// problem is a provider's error: in OpenAI's form, a string, a list, or with a number or a word as code.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"param"`
}

// readProblem parses an error's JSON: the value of "error", or the object around it. ok is false if it has none.
func readProblem(raw []byte) (p problem, ok bool) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return p, false
		}
		raw = list[0]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return problem{Message: text}, text != ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return p, false
	}
	if inner := fields["error"]; len(inner) > 0 && string(inner) != "null" {
		return readProblem(inner)
	}
	word := func(names ...string) string {
		for _, name := range names {
			var s string
			var n json.Number
			if json.Unmarshal(fields[name], &s) == nil && s != "" {
				return s
			}
			if json.Unmarshal(fields[name], &n) == nil && n != "" {
				return n.String()
			}
		}
		return ""
	}
	p = problem{Message: word("message", "detail", "msg"), Type: word("type", "status"), Code: word("code"), Param: word("param")}
	return p, p != problem{}
}

// Error makes a problem the error of an answer that ends with it.
func (p problem) Error() string { return p.Message }

func (p problem) normal() []byte {
	out, _ := json.Marshal(map[string]problem{"error": p}) // strings only: cannot fail
	return out
}

// tooLong matches the messages of servers that have no code for a conversation that is too long.
var tooLong = regexp.MustCompile(`(?i)maximum context length|context (length|window|size)|prompt is too long|too many (input ` +
	`)?tokens|input token count .*exceeds`)

// kind classifies a provider's error; status is the HTTP status, or 0 for an error in a stream.
func (p problem) kind(status int) transport.Kind {
	if n, err := strconv.Atoi(p.Code); err == nil && status < 300 && n >= 400 && n < 600 {
		status = n // in a stream the code may be an HTTP status
	}
	said := transport.KindOfCode(p.Code, p.Type)
	client := status < 300 || status >= 400 && status < 500
	switch {
	case said == transport.KindQuota || said == transport.KindTooLong || said == transport.KindFiltered:
		return said // more specific than a status
	case client && status != http.StatusTooManyRequests && tooLong.MatchString(p.Message):
		return transport.KindTooLong
	case status >= 300:
		return transport.KindOfStatus(status)
	case said != 0:
		return said
	default:
		return transport.KindRetry
	}
}

// retryAfter returns the wait that the provider asks for, or 0 if it is more than an hour, which no user would wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := bounded.RetryAfter(h, now); d <= time.Hour {
		return d
	}
	return 0
}
