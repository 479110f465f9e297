package rest

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"voicegw/internal/openaiwire"
	"voicegw/sim/fault"
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
		return nil, openaiwire.Invalid("", "", "you must provide a model parameter")
	case !ok && azure: // the name of a deployment can be anything
		m = models["text-embedding-3-small"]
	case !ok:
		return nil, ModelNotFound(r.model)
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
	var tokens []int
	var many [][]int
	switch {
	case json.Unmarshal(input, &one) == nil:
		r.texts = []string{one}
	case json.Unmarshal(input, &r.texts) == nil:
	case json.Unmarshal(input, &tokens) == nil:
		return r.readTokens([][]int{tokens})
	case json.Unmarshal(input, &many) == nil:
		return r.readTokens(many)
	default:
		return openaiwire.Invalid("", "",
			"'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
	}
	for i, t := range r.texts {
		if t == "" {
			return openaiwire.Invalid("", openaiwire.Path("input", i), "Invalid '%s': input cannot be an empty string.",
				openaiwire.Path("input", i))
		}
		if bad := r.count(wire.TextTokens(t), i); bad != nil {
			return bad
		}
	}
	return r.countInputs()
}

// readTokens treats tokens as words: their meaning is unknown here, but the same tokens give the same vector.
func (r *embeddingsRequest) readTokens(many [][]int) *Error {
	r.texts = make([]string, 0, min(len(many), maxInputs))
	for i, tokens := range many {
		if len(tokens) == 0 {
			return openaiwire.Invalid("", openaiwire.Path("input", i), "Invalid '%s': input cannot be an empty array.",
				openaiwire.Path("input", i))
		}
		if bad := r.count(len(tokens), i); bad != nil {
			return bad
		}
		var b strings.Builder
		for _, t := range tokens {
			fmt.Fprintf(&b, "token%d ", t)
		}
		r.texts = append(r.texts, b.String())
	}
	return r.countInputs()
}

func (r *embeddingsRequest) count(n, i int) *Error {
	if n > maxTokens {
		return openaiwire.Invalid("", "", "This model's maximum context length is %d tokens, however you requested %d tokens (%d in your "+
			"prompt; 0 for the completion). Please reduce your prompt; or completion length.", maxTokens, n, n)
	}
	if r.tokens += n; r.tokens > maxAllTokens {
		return openaiwire.Invalid("max_tokens_per_request", "", "Requested %d tokens up to input %d, max %d tokens per request",
			r.tokens, i, maxAllTokens)
	}
	return nil
}

func (r *embeddingsRequest) countInputs() *Error {
	switch n := len(r.texts); {
	case n == 0:
		return emptyArray("input")
	case n > maxInputs:
		return tooLong("input", maxInputs, n)
	}
	return nil
}

type vectorOut struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or the base64 of them
}

type answer struct {
	Object string      `json:"object"`
	Data   []vectorOut `json:"data"`
	Model  string      `json:"model"`
	Usage  struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	} `json:"usage"`
}

func (h *Handler) embeddings(x *exchange, body []byte, deployment string, azure bool) *Error {
	r, bad := parseEmbeddings(body, deployment, azure)
	if bad != nil {
		return bad
	}
	x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1})
	a := answer{Object: "list", Model: r.model, Data: make([]vectorOut, len(r.texts))}
	a.Usage.Prompt, a.Usage.Total = r.tokens, r.tokens
	for i, text := range r.texts {
		if x.Pause(0); x.over { // the client may be gone
			return nil
		}
		v := Vector(text, r.dimensions)
		a.Data[i] = vectorOut{Object: "embedding", Index: i, Embedding: v}
		if r.base64 {
			a.Data[i].Embedding = encode(v)
		}
	}
	h.opts.Stats.Embedded.Add(int64(len(r.texts)))
	x.JSON(a)
	return nil
}

func encode(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
