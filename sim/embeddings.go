package sim

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// The provider's limits of a request.
const (
	maxInputs    = 2048
	maxTokens    = 8192   // of one input
	maxAllTokens = 300000 // of one request
)

type model struct {
	dimensions int
	shortens   bool // the client may ask for fewer dimensions
}

// models are the models that the API knows: OpenAI's three, and Gemini's, which Google serves
// with the same API (https://ai.google.dev/gemini-api/docs/openai, read 2026-11-20).
var models = map[string]model{
	"text-embedding-3-small": {1536, true},
	"text-embedding-3-large": {3072, true},
	"text-embedding-ada-002": {1536, false},
	"gemini-embedding-001":   {3072, true},
}

type embeddingsRequest struct {
	model      string
	texts      []string
	tokens     int
	dimensions int
	base64     bool
}

func parseEmbeddings(body []byte, deployment string, azure bool) (*embeddingsRequest, *Error) {
	var raw struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Format     *string         `json:"encoding_format"`
		Dimensions *int            `json:"dimensions"`
	}
	if !json.Valid(body) {
		return nil, openaiwire.Invalid("", "", "We could not parse the JSON body of your request.")
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, openaiwire.Invalid("invalid_type", "", "The request has a parameter of the wrong type: %v", err)
	}
	r := &embeddingsRequest{model: cmp.Or(raw.Model, deployment)}
	m, ok := models[r.model]
	switch {
	case r.model == "":
		return nil, noModel()
	case !ok && azure: // the name of a deployment can be anything
		m = models["text-embedding-3-small"]
	case !ok:
		return nil, modelNotFound(r.model)
	}
	switch {
	case raw.Format == nil || *raw.Format == "float":
	case *raw.Format == "base64":
		r.base64 = true
	default:
		return nil, openaiwire.BadValue("encoding_format", *raw.Format, "float", "base64")
	}
	r.dimensions = m.dimensions
	if d := raw.Dimensions; d != nil {
		switch {
		case !m.shortens:
			return nil, openaiwire.Invalid("", "", "This model does not support specifying dimensions.")
		case *d < 1:
			return nil, inRange("dimensions", d, 1, m.dimensions)
		case *d > m.dimensions:
			return nil, openaiwire.Invalid("", "dimensions", "Invalid value for 'dimensions' = %d. Must be less than or equal to %d.",
				*d, m.dimensions)
		}
		r.dimensions = *d
	}
	return r, r.read(raw.Input)
}

func (r *embeddingsRequest) read(input json.RawMessage) *Error {
	if len(input) == 0 || string(input) == "null" {
		return openaiwire.Missing("input")
	}
	var one string
	var texts []string
	var tokens []int
	var many [][]int
	switch {
	case json.Unmarshal(input, &one) == nil:
		r.texts = []string{one}
	case json.Unmarshal(input, &texts) == nil:
		r.texts = texts
	case json.Unmarshal(input, &tokens) == nil:
		many = [][]int{tokens}
	case json.Unmarshal(input, &many) == nil:
	default:
		return openaiwire.Invalid("", "",
			"'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
	}
	for i, text := range r.texts {
		if bad := r.count(wire.TextTokens(text), text == "", "string", i); bad != nil {
			return bad
		}
	}
	for i, tokens := range many {
		if bad := r.count(len(tokens), len(tokens) == 0, "array", i); bad != nil {
			return bad
		}
		// Tokens are words: their meaning is unknown here, but the same tokens give the same vector.
		var text strings.Builder
		for _, token := range tokens {
			fmt.Fprintf(&text, "token%d ", token)
		}
		r.texts = append(r.texts, text.String())
	}
	switch n := len(r.texts); {
	case n == 0:
		return emptyArray("input")
	case n > maxInputs:
		return tooLong("input", maxInputs, n)
	}
	return nil
}

// count counts the tokens of input i.
func (r *embeddingsRequest) count(n int, empty bool, kind string, i int) *Error {
	switch {
	case empty:
		at := openaiwire.Path("input", i)
		return openaiwire.Invalid("", at, "Invalid '%s': input cannot be an empty %s.", at, kind)
	case n > maxTokens:
		return openaiwire.Invalid("", "", "This model's maximum context length is %d tokens, however you requested %d tokens (%d in your "+
			"prompt; 0 for the completion). Please reduce your prompt; or completion length.", maxTokens, n, n)
	}
	if r.tokens += n; r.tokens > maxAllTokens {
		return openaiwire.Invalid("max_tokens_per_request", "", "Requested %d tokens up to input %d, max %d tokens per request",
			r.tokens, i, maxAllTokens)
	}
	return nil
}

func (s *Server) embeddings(x *exchange, body []byte, deployment string, azure bool) *Error {
	r, bad := parseEmbeddings(body, deployment, azure)
	if bad != nil {
		return bad
	}
	x.At(scenario.Point{At: scenario.AtTurn, N: 1, Turn: 1})
	var vectors []object
	for i, text := range r.texts {
		if x.Pause(0); x.over { // the client may be gone
			return nil
		}
		var vector any = Vector(text, r.dimensions)
		if r.base64 {
			packed, err := binary.Append(nil, binary.LittleEndian, vector)
			if err != nil {
				return failure(http.StatusInternalServerError, err.Error())
			}
			vector = packed // in JSON, bytes are base64
		}
		vectors = append(vectors, object{"object", "embedding", "index", i, "embedding", vector})
	}
	s.opts.Stats.Embedded.Add(int64(len(r.texts)))
	x.JSON(object{"object", "list", "data", vectors, "model", r.model,
		"usage", object{"prompt_tokens", r.tokens, "total_tokens", r.tokens}})
	return nil
}
