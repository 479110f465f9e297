package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"voicegw/registry"
	"voicegw/registry/registrytest"
)

// toolbox returns the tools that the conversations of the tests are held with. Nothing
// in these tests runs them: their results are part of the script.
var toolbox = sync.OnceValue(func() *registry.Snapshot {
	spec := func(id string, change func(*registry.Spec), params string) registry.Entry {
		s := registry.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: registry.CategoryUtility,
			SideEffects: registry.SideEffectsNone, Idempotent: true, AllowedModes: []registry.Mode{registry.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + params + `},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{}}`)}}
	}
	retrieval := func(s *registry.Spec) {
		s.Category, s.SideEffects, s.Cancellable = registry.CategoryRetrieval, registry.SideEffectsReadOnly, true
	}
	const who = `"name":{"type":"string"},"time":{"type":"string"}`
	entries := []registry.Entry{
		spec("kb_search", func(s *registry.Spec) {
			retrieval(s)
			s.Clamp = map[registry.Mode]map[string]int{registry.ModeVoice: {"limit": 50}}
		}, `"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5},"limit":{"type":"integer"}`),
		spec("kb_get", retrieval, `"id":{"type":"string"}`),
		spec("slow_one", func(*registry.Spec) {}, ``),
		spec("text_only", func(s *registry.Spec) { s.AllowedModes = []registry.Mode{registry.ModeText} }, ``),
		spec("book", func(s *registry.Spec) {
			s.Category, s.SideEffects, s.Idempotent, s.IdempotencyKey = registry.CategoryAction, registry.SideEffectsWrites, false, "{name} {time}"
		}, who+`,"note":{"type":"string"}`),
		spec("write", func(s *registry.Spec) {
			s.Category, s.SideEffects, s.Idempotent = registry.CategoryAction, registry.SideEffectsWrites, false
		}, who),
		spec("pay", func(s *registry.Spec) {
			s.Category, s.SideEffects, s.Idempotent = registry.CategoryAction, registry.SideEffectsWrites, false
			s.RequiresConfirmation, s.Preview = true, "Pay {amount} to {to}"
		}, `"amount":{"type":"integer"},"to":{"type":"string"}`),
		spec("report", func(s *registry.Spec) {
			s.Behavior, s.Scheduling, s.Cancellable = registry.BehaviorNonBlocking, registry.SchedulingWhenIdle, true
		}, ``),
		spec("note", func(s *registry.Spec) {
			s.Behavior, s.Scheduling = registry.BehaviorNonBlocking, registry.SchedulingSilent
		}, ``),
	}
	for _, id := range []string{"get_weather", "get_time", "remember", "hush", "end_voice_session", "ignore_user"} {
		entries = append(entries, spec(id, func(*registry.Spec) {}, ``))
	}
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = registry.Bind(func(context.Context, registry.Call[anything, struct{}]) (registry.Result, error) {
			return registry.Result{}, nil
		})
	}
	var t testing.T // File fails a test only for what it cannot encode
	r, err := registry.Load(registrytest.File(&t, entries...), registry.Options{Handlers: handlers})
	if err != nil {
		panic(fmt.Sprint("the toolbox of the tests: ", err))
	}
	return r.Snapshot()
})

// anything holds whatever arguments there are.
type anything map[string]any

// UnmarshalJSON takes any object.
func (a *anything) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*map[string]any)(a))
}
