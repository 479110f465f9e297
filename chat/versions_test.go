package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestAVersionIsTheUsers: a user has the same version of a tool in every conversation, and somebody without a name has
// one in each; the audit names a version that is not the main one.
func TestAVersionIsTheUsers(t *testing.T) {
	done := registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
		return registry.Result{Data: "done"}, nil
	})
	base := entries()[0]
	base.ToolID, base.SideEffects, base.RequiresConfirmation, base.AllowedModes = "clock", spec.SideEffectsNone, false, []spec.Mode{spec.ModeText}
	next := base
	next.ToolID, next.VariantOf, next.Version = "clock_next", "clock", "9.0.0"
	r, err := registry.Load(registrytest.File(t, base, next), registry.Options{
		Handlers: map[string]registry.Handler{"clock": done, "clock_next": done}, Settings: map[string]registry.ToolSettings{"clock_next": {Share: 50}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, setting{})
	f.agent.opts.Tools = r.Snapshot
	draws := func(who user.User, conversation string) string {
		t.Helper()
		before := len(f.audited())
		if _, err := f.respond(t.Context(), Request{ConversationID: conversation, User: who, Message: "Tell me " + fmt.Sprint(before)}, callsTools("", "clock", `{}`), says("Yes.")); err != nil {
			t.Fatal(err)
		}
		record := f.audited()[before]
		if record.ToolID != "clock" || (record.ToolVariant == "clock_next") != (record.ToolVersion == "9.0.0") {
			t.Errorf("the audit has %+v", record)
		}
		return record.ToolVersion
	}
	drawn := map[string]bool{}
	for i := range 12 {
		who := user.Must(fmt.Sprintf("user-%d", i))
		first := draws(who, fmt.Sprintf("c-%d-first", i))
		if second := draws(who, fmt.Sprintf("c-%d-second", i)); second != first {
			t.Errorf("%s has version %s and then %s", who, first, second)
		}
		drawn[first] = true
	}
	if len(drawn) != 2 {
		t.Errorf("twelve users have drawn %v alone", drawn)
	}
}
