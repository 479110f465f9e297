package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"voicegw/chat"
	"voicegw/transport/textmodel"
)

type use string

const (
	passed   use = "passed on"
	honoured use = "honoured"
	accepted use = "accepted"
	refused  use = "refused"
)

type field struct {
	use use
	// doc describes the allowed values, or why no value is allowed, for docs/chat-completions.md.
	doc string
	// read parses a value that isn't null, and returns the problem without the field's name. Nil rejects the field.
	read func(q *completionsQuery, raw json.RawMessage) string
}

// completionsFields are all fields of the API (developers.openai.com/api/docs/api-reference/chat/create, read
// 2026-11-23), as in docs/chat-completions.md (TestFieldsStandInTheDocs). None is ignored; null means absent.
var completionsFields = map[string]field{
	"messages": {honoured, "the conversation, at most 500 messages",
		func(q *completionsQuery, raw json.RawMessage) string { q.messages = raw; return "" }},
	"model":          {honoured, "any name of at most 128 bytes: the agent has one model", readModel},
	"stream":         {honoured, "true or false", into("true or false", func(q *completionsQuery) any { return &q.stream })},
	"stream_options": {honoured, "`include_usage`; `include_obfuscation` may be false", readStreamOptions},
	"user": {honoured, "the [user](chat.md#one-turn)",
		into("text", func(q *completionsQuery) any { return &q.user })},
	"message_id": {honoured, "the gateway's own: your id of the message, for [sending it again](chat.md#sending-a-message-again)",
		into("text", func(q *completionsQuery) any { return &q.messageID })},
	"scopes": {honoured, "the gateway's own: [permissions](chat.md#one-turn)",
		into("a list of texts", func(q *completionsQuery) any { return &q.scopes })},
	"n": {honoured, "1: there is one answer", only("1: there is one answer", "1")},

	"max_tokens":            {honoured, "at least 1, for one answer of the model; limited by `chat.max_output`", readMaxOutput},
	"max_completion_tokens": {honoured, "like `max_tokens`", readMaxOutput},

	"temperature":       {passed, "0 to 2", modelSetting("temperature", number(0, 2))},
	"top_p":             {passed, "0 to 1", modelSetting("top_p", number(0, 1))},
	"presence_penalty":  {passed, "-2 to 2", modelSetting("presence_penalty", number(-2, 2))},
	"frequency_penalty": {passed, "-2 to 2", modelSetting("frequency_penalty", number(-2, 2))},
	"seed":              {passed, "a whole number", modelSetting("seed", wholeNumber)},
	"stop":              {passed, "a text, or 1 to 4 texts", modelSetting("stop", stopTexts)},
	"reasoning_effort": {passed, "`none`, `minimal`, `low`, `medium`, `high` or `xhigh`",
		modelSetting("reasoning_effort", oneOf("none", "minimal", "low", "medium", "high", "xhigh"))},
	"verbosity":       {passed, "`low`, `medium` or `high`", modelSetting("verbosity", oneOf("low", "medium", "high"))},
	"response_format": {passed, "`text`, `json_object` or `json_schema`", readResponseFormat},

	"store": {accepted, "false", only("false: this endpoint stores nothing", "false")},
	"service_tier": {accepted, "`auto` or `default`",
		only("auto or default: the tier is the operator's", `"auto"`, `"default"`)},
	"logprobs": {accepted, "false",
		only("false: there are no log probabilities here", "false")},
	"modalities": {accepted, "`[\"text\"]`", only(`["text"]: answers are text, and images come with it`, `["text"]`)},
	"metadata": {accepted, "`{}`",
		only("empty: this endpoint stores nothing that it could be kept with", "{}")},
	"top_logprobs":           {refused, "there are no log probabilities", nil},
	"logit_bias":             {refused, "the tokens are the model's business", nil},
	"audio":                  {refused, "speech is at `/v1/voice`", nil},
	"prediction":             {refused, "", nil},
	"moderation":             {refused, "", nil},
	"web_search_options":     {refused, "tools are named in `tools`", nil},
	"functions":              {refused, "the old form of `tools`", nil},
	"function_call":          {refused, "the old form of `tool_choice`", nil},
	"tools":                  {honoured, "at most 64 functions [that you run](#tools-of-your-own)", readTools},
	"tool_choice":            {passed, "`none`, `auto`, `required`, or one of your own; of the first answer in the turn", readToolChoice},
	"parallel_tool_calls":    {passed, "true or false", into("true or false", func(q *completionsQuery) any { return &q.parallel })},
	"prompt_cache_key":       {refused, "the gateway names users to the provider itself", nil},
	"prompt_cache_retention": {refused, "", nil},
	"safety_identifier":      {refused, "use `user`", nil},
}

type completionsQuery struct {
	messages  json.RawMessage
	model     string
	stream    bool
	withUsage bool
	user      string
	messageID string
	scopes    []string
	json      bool // the answer must be JSON
	settings  map[string]json.RawMessage
	maxOutput int
	tools     []textmodel.Tool
	choice    json.RawMessage
	chosen    string // the tool that choice names
	parallel  *bool
}

func readCompletionsQuery(body map[string]json.RawMessage) (*completionsQuery, *problem) {
	q := &completionsQuery{settings: map[string]json.RawMessage{}}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		raw := body[name]
		f, known := completionsFields[name]
		switch {
		case !known:
			return nil, wrongField(cmp.Or(clip(name), `""`), "unknown_parameter",
				"Unknown field "+strconv.Quote(clip(name))+"; see docs/chat-completions.md.")
		case string(raw) == "null":
		case f.read == nil:
			message := name + " is not supported"
			if f.doc != "" {
				message += ": " + strings.ReplaceAll(f.doc, "`", "")
			}
			return nil, wrongField(name, "unsupported_parameter", message+".")
		default:
			if wrong := f.read(q, raw); wrong != "" {
				return nil, badField(name, wrong+".")
			}
		}
	}
	if q.chosen != "" && !slices.ContainsFunc(q.tools, func(t textmodel.Tool) bool { return t.Name == q.chosen }) {
		return nil, badField("tool_choice", "names "+strconv.Quote(clip(q.chosen))+
			", which is not one of the tools in tools.")
	}
	return q, nil
}

func readInto(raw json.RawMessage, into any, kind string) string {
	if json.Unmarshal(raw, into) != nil {
		return "must be " + kind
	}
	return ""
}

func into(kind string, place func(*completionsQuery) any) func(*completionsQuery, json.RawMessage) string {
	return func(q *completionsQuery, raw json.RawMessage) string { return readInto(raw, place(q), kind) }
}

func only(must string, values ...string) func(*completionsQuery, json.RawMessage) string {
	return func(_ *completionsQuery, raw json.RawMessage) string {
		var plain bytes.Buffer
		if json.Compact(&plain, raw) == nil && slices.Contains(values, plain.String()) {
			return ""
		}
		return "must be " + must
	}
}

func modelSetting(name string, check func(json.RawMessage) string) func(*completionsQuery, json.RawMessage) string {
	return func(q *completionsQuery, raw json.RawMessage) string {
		wrong := check(raw)
		if wrong == "" {
			q.settings[name] = raw
		}
		return wrong
	}
}

func number(least, most float64) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var n float64
		if json.Unmarshal(raw, &n) != nil || n < least || n > most {
			return fmt.Sprintf("must be a number from %g to %g", least, most)
		}
		return ""
	}
}

func wholeNumber(raw json.RawMessage) string {
	var n int64
	return readInto(raw, &n, "a whole number")
}

func oneOf(words ...string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var s string
		if json.Unmarshal(raw, &s) != nil || !slices.Contains(words, s) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

const (
	maxStops = 4
	maxStop  = 256 // bytes
)

func stopTexts(raw json.RawMessage) string {
	var one string
	all := []string{}
	if json.Unmarshal(raw, &one) == nil {
		all = append(all, one)
	} else if json.Unmarshal(raw, &all) != nil {
		all = nil
	}
	wrong := func(s string) bool { return s == "" || len(s) > maxStop }
	if len(all) == 0 || len(all) > maxStops || slices.ContainsFunc(all, wrong) {
		return fmt.Sprintf("must be a text or a list of 1 to %d texts, of at most %d bytes each", maxStops, maxStop)
	}
	return ""
}

// maxModel limits a model's name, in bytes, because each chunk repeats it.
const maxModel = 128

func readModel(q *completionsQuery, raw json.RawMessage) string {
	if json.Unmarshal(raw, &q.model) != nil || len(q.model) > maxModel {
		return "must be a text of at most " + strconv.Itoa(maxModel) + " bytes; any short name will do"
	}
	return ""
}

func readStreamOptions(q *completionsQuery, raw json.RawMessage) string {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return "must be an object"
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		var on bool
		if name != "include_usage" && name != "include_obfuscation" {
			return "has the unknown field " + strconv.Quote(clip(name))
		}
		if json.Unmarshal(o[name], &on) != nil {
			return "must have true or false as " + name
		}
		if name == "include_obfuscation" && on {
			return "cannot have include_obfuscation: chunks are not padded here"
		}
		q.withUsage = q.withUsage || on
	}
	return ""
}

func readMaxOutput(q *completionsQuery, raw json.RawMessage) string {
	var n int
	if json.Unmarshal(raw, &n) != nil || n < 1 {
		return "must be a whole number of at least 1"
	}
	if q.maxOutput == 0 || n < q.maxOutput {
		q.maxOutput = n
	}
	return ""
}

// maxFormat limits a response_format, in bytes.
const maxFormat = 64 << 10

func readResponseFormat(q *completionsQuery, raw json.RawMessage) string {
	var f struct {
		Type   string `json:"type"`
		Schema *struct {
			Name   string                     `json:"name"`
			Schema map[string]json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	wrong := json.Unmarshal(raw, &f) != nil
	switch {
	case !wrong && len(raw) > maxFormat:
		return "is larger than " + strconv.Itoa(maxFormat>>10) + " KiB"
	case !wrong && f.Type == "text" && f.Schema == nil:
		return "" // the same as without it, so the model needn't support it
	case !wrong && f.Type == "json_object" && f.Schema == nil:
	case !wrong && f.Type == "json_schema" && f.Schema != nil && f.Schema.Name != "":
	default:
		return `must be {"type": "text"}, {"type": "json_object"} or ` +
			`{"type": "json_schema", "json_schema": {"name": "…", "schema": {…}}}`
	}
	q.json = true
	q.settings["response_format"] = raw
	return ""
}

func (s chatAPI) completionsRequest(r *http.Request, q *completionsQuery) (chat.Request, *problem) {
	req, no := s.turnBy(r, q.user, q.scopes)
	if no != nil {
		no.param = "user"
		return req, no
	}
	if wrong := scopesProblem(q.scopes); wrong != "" {
		return req, wrongField("scopes", "invalid_message", wrong)
	}
	req.MaxOutput, req.Tools, req.ToolChoice, req.Parallel = q.maxOutput, q.tools, q.choice, q.parallel
	if len(q.settings) > 0 {
		req.Settings = q.settings
	}
	if req.ID, no = messageID(r, q.messageID); no != nil {
		return req, no
	}
	return req, readMessages(q.messages, &req, &pictures{sees: s.opts.Chat.Sees()})
}
