package adapter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/genai"

	"voicegw/registry/adapter"
)

// TestComposedSchemas checks the package's rule for generated schemas: parts of the corpus inside each other. Merging
// and alternatives fail in combinations.
func TestComposedSchemas(t *testing.T) {
	var parts []any
	schemas := corpus(t)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		_, openAIErr := adapter.OpenAIParameters(schemas[name])
		root, ok := any(nil), false
		if openAIErr == nil {
			root, ok = decode(t, schemas[name]), true
		}
		if m, isMap := root.(map[string]any); ok && isMap && m["$defs"] == nil && m["definitions"] == nil {
			props, _ := m["properties"].(map[string]any)
			for _, p := range slices.Sorted(maps.Keys(props)) {
				parts = append(parts, props[p])
			}
		}
	}
	made, instancesSeen, validSeen := map[string]int{}, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(7, seed))
		root := map[string]any{"type": "object", "properties": map[string]any{"v": compose(rng, parts, 2)}, "additionalProperties": false}
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		check := checker{exact: len(adapter.Looser(text)) == 0}
		if form, err := adapter.OpenAIParameters(text); err == nil {
			made["openai"]++
			check.openAI = compile(t, form)
		}
		if form, err := adapter.GeminiParameters(text); err == nil {
			made["gemini"]++
			check.gemini = &genai.Schema{}
			if err := json.Unmarshal(form, check.gemini); err != nil {
				t.Fatal(err)
			}
		}
		if check.openAI == nil && check.gemini == nil {
			continue
		}
		canonical := compile(t, text)
		generator := &instances{root: root, rng: rng}
		for range 80 {
			v := generator.make()
			accepted := canonical.Validate(v) == nil
			instancesSeen++
			if accepted {
				validSeen++
			}
			if check.instance(t, v, accepted); t.Failed() {
				t.Fatalf("seed %d, schema %s", seed, text)
			}
		}
	}
	t.Log(made, instancesSeen, validSeen)
	if made["openai"] < 100 || made["gemini"] < 60 || validSeen < 1000 || instancesSeen-validSeen < 1000 {
		t.Errorf("too little was tried: %v forms, %d instances, %d of them valid", made, instancesSeen, validSeen)
	}
}

func compose(rng *rand.Rand, parts []any, depth int) any {
	one := func() any {
		if depth > 0 && rng.IntN(2) == 0 {
			return compose(rng, parts, depth-1)
		}
		return parts[rng.IntN(len(parts))]
	}
	switch rng.IntN(8) {
	case 0:
		return map[string]any{"allOf": []any{one(), one()}}
	case 1:
		return map[string]any{"anyOf": []any{one(), one()}, "description": "one or the other"}
	case 2:
		return map[string]any{"oneOf": []any{one(), one(), map[string]any{"type": "null"}}}
	case 3:
		return map[string]any{"type": "array", "items": one(), "maxItems": json.Number(fmt.Sprint(rng.IntN(4)))}
	case 4:
		return map[string]any{"type": "object", "properties": map[string]any{"a": one(), "b": one()}, "required": []any{"a"}, "additionalProperties": false}
	case 5: // two parts together
		return map[string]any{"anyOf": []any{one(), one()}, "allOf": []any{one()}}
	case 6: // the same object twice, constrained twice
		return map[string]any{"allOf": []any{
			map[string]any{"type": "object", "properties": map[string]any{"a": one(), "b": one()}, "additionalProperties": false},
			map[string]any{"properties": map[string]any{"b": one(), "c": one()}},
		}}
	default:
		return one()
	}
}
