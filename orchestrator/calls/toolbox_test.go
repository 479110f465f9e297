package calls

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// toolbox returns the tools of these tests, which never run.
var toolbox = sync.OnceValue(func() *registry.Snapshot {
	both := []spec.Mode{spec.ModeText, spec.ModeVoice}
	declare := func(id string, params string, change func(*spec.Spec)) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: both, LatencyBudgetMS: 1000, TimeoutMS: 60_000,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + params + `},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{}}`)}}
	}
	retrieval := func(s *spec.Spec) {
		s.Category, s.SideEffects = spec.CategoryRetrieval, spec.SideEffectsReadOnly
	}
	writes := func(s *spec.Spec) {
		s.Category, s.SideEffects, s.Idempotent = spec.CategoryAction, spec.SideEffectsWrites, false
	}
	entries := []registry.Entry{
		declare("search", `"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5}`, retrieval),
		declare("get", `"id":{"type":"string"}`, retrieval),
		declare("time", `"zone":{"type":"string"}`, func(*spec.Spec) {}),
		declare("text_only", ``, func(s *spec.Spec) { s.AllowedModes = both[:1] }),
		declare("write", `"text":{"type":"string"}`, writes),
		declare("book", `"who":{"type":"string"},"note":{"type":"string"}`, func(s *spec.Spec) {
			writes(s)
			s.IdempotencyKey = "{who}"
		}),
		declare("stop", `"id":{"type":"string"}`, func(s *spec.Spec) { s.Cancellable = true }),
		declare("pay", `"amount":{"type":"integer"}`, func(s *spec.Spec) {
			writes(s)
			s.RequiresConfirmation = true
		}),
	}
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = registry.Bind(func(context.Context, registry.Call[anything, struct{}]) (registry.Result, error) {
			return registry.Result{}, nil
		})
	}
	var t testing.T // File fails a test only if it cannot encode an entry
	r, err := registry.Load(registrytest.File(&t, entries...), registry.Options{Handlers: handlers})
	if err != nil {
		panic("the toolbox of the tests: " + err.Error())
	}
	return r.Snapshot()
})

// anything holds any arguments.
type anything map[string]any

// UnmarshalJSON takes any object.
func (a *anything) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*map[string]any)(a))
}

// calling is a call of the first turn.
func calling(id, provider, tool, args string) testCall {
	return testCall{ID: id, ProviderID: provider, Tool: tool, Args: json.RawMessage(args), Turn: 1}
}

func good(data string) registry.Envelope {
	return registry.Envelope{OK: true, Data: json.RawMessage(data)}
}

func bad() registry.Envelope {
	return registry.Envelope{Error: &registry.Error{Type: registry.ErrorTransient, Message: "It failed."}}
}
