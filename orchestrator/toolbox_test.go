package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// toolbox returns the tools of the conversations. They never run: the script contains their results.
var toolbox = sync.OnceValue(func() *registry.Snapshot {
	declare := func(id string, change func(*spec.Spec), params string) registry.Entry {
		s := spec.Spec{
			ToolID: id, Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: []spec.Mode{spec.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + params + `},"additionalProperties":false}`),
		}
		change(&s)
		return registry.Entry{Spec: s, Summary: "A tool of a test.", Guide: "# " + id + "\n", Forms: registry.Forms{
			OpenAI: s.Parameters, OpenAIChat: s.Parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{}}`)}}
	}
	retrieval := func(s *spec.Spec) {
		s.Category, s.SideEffects, s.Cancellable = spec.CategoryRetrieval, spec.SideEffectsReadOnly, true
	}
	const who = `"name":{"type":"string"},"time":{"type":"string"}`
	entries := []registry.Entry{
		declare("kb_search", func(s *spec.Spec) {
			retrieval(s)
			s.Clamp = map[spec.Mode]map[string]int{spec.ModeVoice: {"limit": 50}}
		}, `"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":20,"default":5},"limit":{"type":"integer"}`),
		declare("kb_get", retrieval, `"id":{"type":"string"}`),
		declare("slow_one", func(*spec.Spec) {}, ``),
		declare("text_only", func(s *spec.Spec) { s.AllowedModes = []spec.Mode{spec.ModeText} }, ``),
		declare("book", func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Idempotent, s.IdempotencyKey = spec.CategoryAction, spec.SideEffectsWrites, false, "{name} {time}"
		}, who+`,"note":{"type":"string"}`),
		declare("write", func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Idempotent = spec.CategoryAction, spec.SideEffectsWrites, false
		}, who),
		declare("pay", func(s *spec.Spec) {
			s.Category, s.SideEffects, s.Idempotent = spec.CategoryAction, spec.SideEffectsWrites, false
			s.RequiresConfirmation, s.Preview = true, "Pay {amount} to {to}"
		}, `"amount":{"type":"integer"},"to":{"type":"string"}`),
		declare("report", func(s *spec.Spec) {
			s.Behavior, s.Scheduling, s.Cancellable = spec.BehaviorNonBlocking, spec.SchedulingWhenIdle, true
		}, ``),
		declare("note", func(s *spec.Spec) {
			s.Behavior, s.Scheduling = spec.BehaviorNonBlocking, spec.SchedulingSilent
		}, ``),
	}
	for _, id := range []string{"get_weather", "get_time", "remember", "hush", "end_voice_session", "ignore_user"} {
		entries = append(entries, declare(id, func(*spec.Spec) {}, ``))
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
		panic(fmt.Sprint("the toolbox of the tests: ", err))
	}
	return r.Snapshot()
})

// anything holds any arguments.
type anything map[string]any

// UnmarshalJSON takes any object.
func (a *anything) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*map[string]any)(a))
}
