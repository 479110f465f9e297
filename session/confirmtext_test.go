package session

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// TestAPIConfirmsText: a confirmation of a text conversation runs with the conversation's context although its client
// is disconnected.
func TestAPIConfirmsText(t *testing.T) {
	type needs struct {
		Gallery registry.Gallery
		Inviter registry.Inviter
	}
	e := entry("draw", "1.0.0")
	e.AllowedModes, e.RequiresConfirmation = []spec.Mode{spec.ModeText}, true
	tools, err := registry.Load(registrytest.File(t, e), registry.Options{
		Handlers: map[string]registry.Handler{"draw": registry.Bind(func(_ context.Context, c registry.Call[noArgs, needs]) (registry.Result, error) {
			c.Needs.Gallery.Show(registry.Image{ID: "1"})
			return registry.Result{Data: c.Needs.Inviter.Origin()}, nil
		})},
		ModeCapabilities: map[spec.Mode][]reflect.Type{spec.ModeText: {reflect.TypeFor[registry.Gallery](), reflect.TypeFor[registry.Inviter]()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := &storetest.Confirmations{}
	if err := asked.Create(t.Context(), store.Confirmation{
		Token: "cf_1", Reference: "ABC", Session: "chat-1", User: "ada", Mode: string(spec.ModeText), Tool: "draw", ToolVersion: "1.0.0",
		Turn: 1, Args: json.RawMessage(`{}`), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}); err != nil {
		t.Fatal(err)
	}
	m, err := NewManager(Options{
		Transports: map[string]transport.Transport{"fake": newFakeModel(hearing)}, Provider: "fake",
		Tools: tools.Snapshot, Executor: execute.New(execute.Options{Confirmations: asked}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	done, err := m.Confirm(t.Context(), "cf_1", true, user.User{})
	if err != nil || done.Envelope == nil || !done.Envelope.OK {
		t.Fatalf("%+v, %v", done, err)
	}
}
