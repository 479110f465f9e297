package registry

import (
	"context"
	"encoding/json"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

// TestOptional: an optional need is filled if one candidate provides it, also in a snapshot of some tools, and
// otherwise empty; several candidates are refused as for any other need.
func TestOptional(t *testing.T) {
	type needs struct {
		Store    Optional[*store]
		Phone    Optional[*phone]
		Snapshot Optional[*Snapshot]
	}
	e := entry(t, testutil.KBSearchSchema)
	var got needs
	handler := Bind(func(_ context.Context, call Call[kbArgs, needs]) (Result, error) {
		got = call.Needs
		return Result{}, nil
	})
	kept := &store{name: "kept"}
	r := mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": handler}, Capabilities: []any{kept}}, e)
	only := r.Snapshot().Only([]string{"kb_search"})
	for _, s := range []*Snapshot{r.Snapshot(), only} {
		s.Execute(t.Context(), "kb_search", spec.ModeText, json.RawMessage(`{"query":"x"}`), Session{})
		if v, ok := got.Store.Get(); !ok || v != kept {
			t.Errorf("the store is %v, %v", v, ok)
		}
		if v, ok := got.Phone.Get(); ok || v != nil {
			t.Errorf("the phone is %v, %v", v, ok)
		}
		if v, ok := got.Snapshot.Get(); !ok || v != s {
			t.Errorf("the tools are those of another snapshot: %v, %v", v == r.Snapshot(), ok)
		}
	}
	if v, ok := Some(5).Get(); !ok || v != 5 {
		t.Errorf("Some: %v, %v", v, ok)
	}
}
