package chat

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestPartsReachTheClient: a tool's partial results reach the client of the turn in order, before the end of the
// call; the model gets only the result.
func TestPartsReachTheClient(t *testing.T) {
	rows := func(_ context.Context, call registry.Call[json.RawMessage, struct{ Stream registry.Stream }]) (registry.Result, error) {
		for _, row := range []string{"one", "two"} {
			if err := call.Needs.Stream.Part(row); err != nil {
				return registry.Result{}, err
			}
		}
		return registry.Result{Data: "two rows"}, nil
	}
	entry := entries()[0]
	entry.ToolID, entry.SideEffects, entry.RequiresConfirmation, entry.AllowedModes = "rows", spec.SideEffectsNone, false, []spec.Mode{spec.ModeText}
	r, err := registry.Load(registrytest.File(t, entry), registry.Options{
		Handlers: map[string]registry.Handler{"rows": registry.Bind(rows)}, SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Stream]()},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, fixtureSetting{})
	f.agent.opts.Tools = r.Snapshot
	sent := f.say("Show me", callsTools("", "rows", `{}`), says("Here they are."))
	var got []string
	for _, m := range of[*protocol.ToolMessage](sent) {
		got = append(got, m.Tool+" "+m.Name+" "+string(m.Data))
	}
	if want := []string{`rows result.part {"part":1,"data":"one"}`, `rows result.part {"part":2,"data":"two"}`}; !slices.Equal(got, want) {
		t.Errorf("the client gets %q", got)
	}
	if types := sent.types(); !strings.HasPrefix(types, "tool.started tool.message tool.message tool.ended") {
		t.Error(types)
	}
	if env := answers(t, f.last())[0]; !env.OK || string(env.Data) != `"two rows"` {
		t.Errorf("the model gets %s", env.Encode())
	}
}
