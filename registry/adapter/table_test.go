package adapter_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"voicegw/registry/adapter"
)

// samples has a schema for each keyword of the table: of a property, or the whole if it begins with the type object
// and is closed.
var samples = map[string]string{
	"type": `{"type":"string"}`, "title": `{"type":"string","title":"T"}`, "description": `{"type":"string","description":"D"}`,
	"enum": `{"enum":["a"]}`, "const": `{"const":"a"}`, "default": `{"type":"string","default":"a"}`, "examples": `{"type":"string","examples":["a"]}`,
	"deprecated": `{"type":"string","deprecated":true}`, "readOnly": `{"type":"string","readOnly":true}`, "writeOnly": `{"type":"string","writeOnly":true}`,
	"format": `{"type":"string","format":"date"}`, "contentEncoding": `{"type":"string","contentEncoding":"base64"}`,
	"contentMediaType": `{"type":"string","contentMediaType":"text/html"}`,
	"pattern":          `{"type":"string","pattern":"^a"}`, "minLength": `{"type":"string","minLength":1}`, "maxLength": `{"type":"string","maxLength":1}`,
	"minimum": `{"type":"number","minimum":1}`, "exclusiveMinimum": `{"type":"number","exclusiveMinimum":1}`,
	"maximum": `{"type":"number","maximum":1}`, "exclusiveMaximum": `{"type":"number","exclusiveMaximum":1}`, "multipleOf": `{"type":"number","multipleOf":3}`,
	"items":    `{"type":"array","items":{"type":"string"}}`,
	"minItems": `{"type":"array","items":{"type":"string"},"minItems":1}`, "maxItems": `{"type":"array","items":{"type":"string"},"maxItems":1}`,
	"uniqueItems":   `{"type":"array","items":{"type":"string"},"uniqueItems":true}`,
	"properties":    `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
	"required":      `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"required":["a"]}`,
	"minProperties": `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"minProperties":1}`,
	"maxProperties": `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"maxProperties":1}`, "additionalProperties": `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
	"dependentRequired": `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false,"dependentRequired":{"a":["b"]}}`,
	"anyOf":             `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, "oneOf": `{"oneOf":[{"type":"string"},{"type":"integer"}]}`,
	"allOf": `{"allOf":[{"type":"string"},{"minLength":1}]}`,
	"$ref":  `{"$ref":"#/properties/other"}`, "$defs": `{"type":"string","$defs":{"a":{"type":"string"}}}`,
	"$schema":  `{"type":"string","$schema":"https://json-schema.org/draft/2020-12/schema"}`,
	"$comment": `{"type":"string","$comment":"C"}`,
}

// TestTheTableIsTrue checks the table, which is a promise to authors, for each keyword.
func TestTheTableIsTrue(t *testing.T) {
	for _, k := range keywords {
		sample, ok := samples[k.name]
		if !ok {
			t.Errorf("%s has no sample here", k.name)
			continue
		}
		schema := object(`"v":` + sample + `,"other":{"type":"boolean"}`)
		openAI, openAIErr := adapter.OpenAIParameters(schema)
		gemini, geminiErr := adapter.GeminiParameters(schema)
		checkTreatment(t, "OpenAI", k.name, k.openAI, openAI, openAIErr)
		checkTreatment(t, "Gemini", k.name, k.gemini, gemini, geminiErr)
		words := strings.Contains(string(gemini), `"description":"`) && k.name != "description"
		if geminiErr == nil && k.gemini == said != words && !slices.Contains([]string{"format", "exclusiveMinimum", "exclusiveMaximum"}, k.name) {
			t.Errorf("Gemini: %s is %s, but the form is %s", k.name, k.gemini, gemini)
		}
	}
}

func checkTreatment(t *testing.T, form, name string, treated treatment, made json.RawMessage, err error) {
	t.Helper()
	present := strings.Contains(string(made), `"`+name+`":`)
	switch treated {
	case kept:
		if err != nil || !present {
			t.Errorf("%s: %s is not kept: %s %v", form, name, made, err)
		}
	case dropped, said:
		if err != nil || present {
			t.Errorf("%s: %s is not %s: %s %v", form, name, treated, made, err)
		}
	case rewritten:
		same := form == "Gemini" && (name == "type" || name == "enum")
		if err != nil || present && !same {
			t.Errorf("%s: %s is not rewritten: %s %v", form, name, made, err)
		}
	}
}
