package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestAVersionIsTheUsers: a user has the same version of a tool in every conversation, and an anonymous user one in
// each; the audit names a version that is not the main one.
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
	f := newFixture(t, fixtureSetting{})
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
		t.Errorf("twelve users all have %v", drawn)
	}
}

// TestAQuestionIsAnsweredWithItsVersion: the shares change after one version of a tool has asked. That version runs
// the approved call, and the audit names it.
func TestAQuestionIsAnsweredWithItsVersion(t *testing.T) {
	ran := map[string]int{}
	does := func(version string) registry.Handler {
		return registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
			ran[version]++
			return registry.Result{Data: version}, nil
		})
	}
	base := entries()[0]
	base.ToolID, base.AllowedModes = "transfer", []spec.Mode{spec.ModeText}
	base.Category, base.SideEffects, base.RequiresConfirmation = spec.CategoryAction, spec.SideEffectsWrites, true
	next := base
	next.ToolID, next.VariantOf, next.Version = "transfer_next", "transfer", "9.0.0"
	shares := func(n int) map[string]registry.ToolSettings {
		return map[string]registry.ToolSettings{"transfer_next": {Share: n}}
	}
	for share, want := range map[int]string{0: base.Version, 100: "9.0.0"} {
		bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
			r, err := registry.Load(registrytest.File(t, base, next), registry.Options{
				Handlers: map[string]registry.Handler{"transfer": does(base.Version), "transfer_next": does("9.0.0")}, Settings: shares(share),
			})
			if err != nil {
				t.Fatal(err)
			}
			f.agent.opts.Tools = r.Snapshot
			sent := f.say("Go", callsTools("", "transfer", `{}`), says("Shall I?"))
			asked := of[*protocol.ConfirmationRequest](sent)
			if len(asked) != 1 {
				t.Fatalf("%d questions", len(asked))
			}
			take, err := r.Configure(shares(100-share), registry.Foreign{})
			if err != nil {
				t.Fatal(err)
			}
			take()
			clear(ran)
			if _, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked[0].Token, Approved: true}}, says("Done.")); err != nil {
				t.Fatal(err)
			}
			lines := f.audited()
			if last := lines[len(lines)-1]; ran[want] != 1 || len(ran) != 1 || !last.OK || last.ToolVersion != want {
				t.Errorf("%v ran, and the audit has %+v", ran, last)
			}
		})
	}
}
