package adapter_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/realtime"
	"google.golang.org/genai"
)

// TestGeminiFormsSurviveGenai decodes each form with genai's types, strictly, and encodes it again: nothing is lost
// or renamed, and the order of properties is kept.
func TestGeminiFormsSurviveGenai(t *testing.T) {
	for name, text := range corpus(t) {
		form, err := gemini(declare(text))
		if err != nil {
			continue
		}
		var d genai.FunctionDeclaration
		dec := json.NewDecoder(bytes.NewReader(form))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&d); err != nil {
			t.Errorf("%s: genai does not read %s: %v", name, form, err)
			continue
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, form), decode(t, again)); diff != "" {
			t.Errorf("%s: genai loses something (-form +again):\n%s", name, diff)
		}
		if d.Parameters != nil {
			checkOrdering(t, name, d.Parameters)
		}
	}
}

// checkOrdering checks that every object lists exactly its properties, and requires no others, which the server
// refuses.
func checkOrdering(t *testing.T, name string, s *genai.Schema) {
	t.Helper()
	order := slices.Sorted(slices.Values(s.PropertyOrdering))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.Properties)), order); diff != "" {
		t.Errorf("%s: propertyOrdering is not the properties:\n%s", name, diff)
	}
	for _, r := range s.Required {
		if s.Properties[r] == nil {
			t.Errorf("%s: %q is required, but not a property", name, r)
		}
	}
	for _, p := range s.Properties {
		checkOrdering(t, name, p)
	}
	if s.Items != nil {
		checkOrdering(t, name, s.Items)
	}
	for _, one := range s.AnyOf {
		checkOrdering(t, name, one)
	}
	if len(s.AnyOf) > 0 && s.Type != "" || len(s.AnyOf) == 0 && s.Type == "" {
		t.Errorf("%s: a schema has either a type or anyOf", name)
	}
}

// floatValues decodes like openai-go, with numbers as float64.
func floatValues(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOpenAIFormsSurviveOpenAIGo(t *testing.T) {
	for name, text := range corpus(t) {
		flat, err := openAIRealtime(declare(text))
		if err != nil {
			continue
		}
		nested, err := openAIChat(declare(text))
		if err != nil {
			t.Fatal(err)
		}
		var tool realtime.RealtimeFunctionToolParam
		var chat openai.ChatCompletionFunctionToolParam
		for _, one := range []struct {
			form json.RawMessage
			into any
		}{{flat, &tool}, {nested, &chat}} {
			if err := json.Unmarshal(one.form, one.into); err != nil {
				t.Errorf("%s: openai-go does not read %s: %v", name, one.form, err)
				continue
			}
			again, err := json.Marshal(one.into)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(floatValues(t, one.form), floatValues(t, again)); diff != "" {
				t.Errorf("%s: openai-go loses something (-form +again):\n%s", name, diff)
			}
		}
		if tool.Name.Value != "the_tool" || tool.Parameters == nil || chat.Function.Name != "the_tool" || chat.Function.Parameters == nil {
			t.Errorf("%s: openai-go does not see name and parameters", name)
		}
	}
}
