package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
)

const (
	maxTools    = 128
	maxChoices  = 128
	maxStops    = 4
	maxMessages = 2048
)

// chatRequest has the parameters that matter. Those without an effect on a simulated model (temperature, seed, …) are
// only checked.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                json.RawMessage `json:"stop"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	ResponseFormat      *responseFormat `json:"response_format"`

	// Filled in from the above by parseChat.
	stops  []string
	choice toolChoice
}

type streamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type toolChoice struct {
	off, required bool
	named         string
}

var known = strings.Fields(`audio frequency_penalty logit_bias logprobs max_completion_tokens max_tokens messages
	metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
	prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
	stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
	web_search_options`)

// The texts of the errors below are the provider's if users' reports quote them; those
// marked (own) are written in its style.

// parseChat reads and checks a request. deployment is the deployment in Azure's path.
func parseChat(body []byte, deployment string, azure bool) (*chatRequest, *Error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil || top == nil {
		return nil, openaiwire.Invalid("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't "+
			"using your HTTP library correctly. "+
			"The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out "+
			"how to fix this, please contact us through our help center at help.openai.com.)")
	}
	for _, name := range []string{"functions", "function_call"} {
		if _, ok := top[name]; ok { // (own)
			return nil, openaiwire.Invalid("unsupported_parameter", name,
				"Unsupported parameter: '%s' was replaced by tools, and is not simulated.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(known, name) {
			return nil, openaiwire.Invalid("", "", "Unrecognized request argument supplied: %s", name)
		}
	}
	r := &chatRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, wrongType(err)
	}
	r.Model = cmp.Or(r.Model, deployment)
	if bad := checkModel(r.Model, azure); bad != nil {
		return nil, bad
	}
	for _, check := range []func() *Error{r.checkMessages, r.checkTools, r.checkChoice, r.checkNumbers, r.checkStop, r.checkFormat} {
		if bad := check(); bad != nil {
			return nil, bad
		}
	}
	return r, nil
}

func wrongType(err error) *Error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return openaiwire.Invalid("", "", "The request is not valid JSON: %v", err) // (own)
	}
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "a boolean", reflect.Slice: "an array",
		reflect.Int: "an integer", reflect.Float64: "a decimal"}[t.Type.Kind()]
	return openaiwire.WrongType(t.Field, cmp.Or(want, "an object"), t.Value)
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (r *chatRequest) checkTools() *Error {
	if len(r.Tools) > maxTools {
		return tooLong("tools", maxTools, len(r.Tools))
	}
	for i, t := range r.Tools {
		at := openaiwire.Path("tools", i)
		switch {
		case t.Type == "":
			return openaiwire.Missing(at + ".type")
		case t.Type != "function":
			return openaiwire.BadValue(at+".type", t.Type, "function")
		case t.Function.Name == "":
			return openaiwire.Missing(at + ".function.name")
		case !functionName.MatchString(t.Function.Name):
			return openaiwire.Invalid("invalid_value", at+".function.name",
				"Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern "+
					"'^[a-zA-Z0-9_-]+$'.", at)
		}
	}
	if len(r.Tools) == 0 && r.ParallelToolCalls != nil {
		return openaiwire.Invalid("", "parallel_tool_calls",
			"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	return nil
}

func (r *chatRequest) checkChoice() *Error {
	raw := r.ToolChoice
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var word string
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	isWord := json.Unmarshal(raw, &word) == nil
	switch {
	case len(r.Tools) == 0 && word != "none" && word != "auto":
		return openaiwire.Invalid("", "tool_choice",
			"Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	case isWord && (word == "none" || word == "auto" || word == "required"):
		r.choice.off, r.choice.required = word == "none", word == "required"
		return nil
	case isWord:
		return openaiwire.BadValue("tool_choice", word, "none", "auto", "required")
	case json.Unmarshal(raw, &named) != nil || named.Type != "function" || named.Function.Name == "":
		return openaiwire.Missing("tool_choice.function")
	case !slices.ContainsFunc(r.Tools, func(t tool) bool { return t.Function.Name == named.Function.Name }):
		return openaiwire.Invalid("", "tool_choice", "Tool choice '%s' not found in 'tools' parameter.", named.Function.Name) // (own)
	}
	r.choice.named = named.Function.Name
	return nil
}

func (r *chatRequest) checkNumbers() *Error {
	if bad := cmp.Or(
		inRange("n", r.N, 1, maxChoices), inRange("max_tokens", r.MaxTokens, 1, 1<<30),
		inRange("max_completion_tokens", r.MaxCompletionTokens, 1, 1<<30),
		inRange("temperature", r.Temperature, 0, 2), inRange("top_p", r.TopP, 0, 1),
	); bad != nil {
		return bad
	}
	switch {
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return openaiwire.Invalid("invalid_parameter_combination", "",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case r.StreamOptions != nil && !r.Stream:
		return openaiwire.Invalid("", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func (r *chatRequest) checkStop() *Error {
	if len(r.Stop) == 0 || string(r.Stop) == "null" {
		return nil
	}
	var one string
	if json.Unmarshal(r.Stop, &one) == nil {
		r.stops = []string{one}
	} else if json.Unmarshal(r.Stop, &r.stops) != nil {
		return openaiwire.Invalid("invalid_type", "stop", "Invalid type for 'stop': expected one of a string or array of strings.")
	}
	if len(r.stops) > maxStops {
		return tooLong("stop", maxStops, len(r.stops))
	}
	r.stops = slices.DeleteFunc(r.stops, func(s string) bool { return s == "" })
	return nil
}

func (r *chatRequest) checkFormat() *Error {
	f := r.ResponseFormat
	if f == nil {
		return nil
	}
	switch f.Type {
	case "text":
	case "json_object":
		for _, m := range r.Messages {
			if strings.Contains(strings.ToLower(m.text), "json") {
				return nil
			}
		}
		return openaiwire.Invalid("", "messages", "'messages' must contain the word 'json' in some form, to use 'response_format' of "+
			"type 'json_object'.")
	case "json_schema":
		if f.JSONSchema == nil || f.JSONSchema.Name == "" {
			return openaiwire.Missing("response_format.json_schema")
		}
	default:
		return openaiwire.BadValue("response_format.type", f.Type, "json_object", "json_schema", "text")
	}
	return nil
}

func (r *chatRequest) limit() int {
	if n := cmp.Or(r.MaxTokens, r.MaxCompletionTokens); n != nil {
		return *n
	}
	return 0
}

func (r *chatRequest) choices() int {
	if r.N == nil {
		return 1
	}
	return *r.N
}

func (r *chatRequest) tools() []scenario.Tool {
	var out []scenario.Tool
	for _, t := range r.Tools {
		out = append(out, scenario.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return out
}

// chatModels are the models that the API knows: OpenAI's, as its Go client 3.95 lists them, with their dated snapshots,
// and Gemini's, which Google serves with the same API (https://ai.google.dev/gemini-api/docs/openai, read 2026-11-20).
var chatModels = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`gpt-3\.5-turbo(?:-16k)?`,
	`gpt-4(?:-32k|-turbo|-turbo-preview)?`,
	`gpt-4\.1(?:-mini|-nano)?`,
	`(?:chatgpt-4o|gpt-4o)(?:-mini)?(?:-search-preview)?`,
	`gpt-5(?:\.\d)?(?:-mini|-nano|-pro|-chat|-codex|-sol|-terra|-luna)?`,
	`gpt-6(?:\.\d)?-(?:sol|terra|luna|astra)`,
	`o[134](?:-mini|-pro|-preview)?`,
	`(?:models/)?gemini-\d(?:\.\d)?-(?:flash|flash-lite|pro)(?:-preview)?`,
}, "|") + `)(?:-latest|-\d{4}-\d{2}-\d{2}|-\d{4}|-\d{2}-\d{4})?$`)

var otherModels = regexp.MustCompile(`realtime|^text-embedding-|-image|^dall-e-|^tts-|^whisper|-transcribe|^imagen-|-live-`)

// checkModel refuses a name as the provider does. On Azure any name is accepted, because it is that of a deployment.
func checkModel(name string, azure bool) *Error {
	switch {
	case name == "":
		return noModel()
	case azure, chatModels.MatchString(name) && !otherModels.MatchString(name):
		return nil
	case otherModels.MatchString(name):
		return &Error{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "model",
			Message: "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to " +
				"use v1/completions?"}
	}
	return modelNotFound(name)
}
