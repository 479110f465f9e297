package adapter_test

import (
	"bytes"
	"encoding/json"

	"voicegw/registry/adapter"
)

// declaration is a tool's declaration for a provider, in the golden files.
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func openAIRealtime(d declaration) (json.RawMessage, error) {
	var err error
	d.Parameters, err = adapter.OpenAIParameters(d.Parameters)
	return written(struct {
		Type string `json:"type"`
		declaration
	}{"function", d}, err)
}

func openAIChat(d declaration) (json.RawMessage, error) {
	var err error
	d.Parameters, err = adapter.OpenAIParameters(d.Parameters)
	return written(struct {
		Type     string      `json:"type"`
		Function declaration `json:"function"`
	}{"function", d}, err)
}

func gemini(d declaration) (json.RawMessage, error) {
	var err error
	d.Parameters, err = adapter.GeminiParameters(d.Parameters)
	return written(d, err)
}

// written is v as JSON, or err.
func written(v any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
