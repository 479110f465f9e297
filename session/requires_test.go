package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/internal/auth"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// guarded returns a registry with the tools watch and clock. Clock requires the scope clock.read.
func guarded(t *testing.T) *registry.Registry {
	t.Helper()
	done := handlerFunc(func(context.Context) (registry.Result, error) { return registry.Result{Data: "done"}, nil }).bind()
	clock := entry("clock", "1.0.0")
	clock.Requires = []string{"clock.read"}
	tools, err := registry.Load(registrytest.File(t, clock, entry("watch", "1.0.0")),
		registry.Options{Handlers: map[string]registry.Handler{"clock": done, "watch": done}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// granted returns the principal ada with scopes for tools.
func granted(scopes string) auth.Principal {
	p := tokenOfAda
	p.Grants = scopes
	return p
}

// hasClock checks that the model has the tool clock and can call it, or neither.
func hasClock(t *testing.T, model *fakeConn, tools []transport.Tool, has bool, call string) {
	t.Helper()
	if got := names(tools); slices.Contains(got, "clock") != has {
		t.Errorf("%s: the model has the tools %v", call, got)
	}
	for _, tool := range tools {
		if tool.Name == spec.DescribeTool && strings.Contains(string(tool.Parameters), `"clock"`) != has {
			t.Errorf("%s: guides of %s are offered", call, tool.Parameters)
		}
	}
	asked(model, "clock", call)
	if env := results(t, model)[call]; env.OK != has || !has && (env.Error.Type != registry.ErrorNotFound || !strings.Contains(env.Error.Suggestion, "watch")) {
		t.Errorf("%s: the answer is %+v", call, env)
	}
}

// TestToolScope: only a caller with the scope that a tool requires has the tool, also with the next agent.
func TestToolScope(t *testing.T) {
	for scopes, has := range map[string]bool{"": false, "clock.write kb:clock.read": false, "kb:x clock.read": true} {
		synctest.Test(t, func(t *testing.T) {
			c := troupe()
			c.put(Agent{Name: "billing", Instructions: "You are billing.", Tools: []string{"clock", "watch"}})
			st := newStage(t, live, func(o *Options) { o.Agents, o.Tools, o.Policy.Tools.Budget = c, guarded(t).Snapshot, roomy })
			client := st.enter(startWith(`,"agent":"desk"`), func(a *Admission) { a.Principal = granted(scopes) })
			model := st.fake.Accept(t)
			synctest.Wait()
			client.last(t, "session.started")
			hasClock(t, model, model.Setup().Tools, has, "c1")
			handOver(model, "billing", "c2")
			model.Emit(transport.Reconfigured{})
			synctest.Wait()
			next := reconfigured(model)
			if len(next) != 1 {
				t.Fatalf("the model was reconfigured with %+v", next)
			}
			hasClock(t, model, next[0].Tools, has, "c3")
		})
	}
}

// TestToolScopeAfterTakeover: the node that continues a session withholds the tools that its user may not call.
func TestToolScopeAfterTakeover(t *testing.T) {
	for scopes, has := range map[string]bool{"kb:x": false, "clock.read": true} {
		synctest.Test(t, func(t *testing.T) {
			f := newShelf()
			equipped := func(o *Options) { o.Tools, o.Policy.Tools.Budget = guarded(t).Snapshot, roomy }
			as := func(a *Admission) { a.Principal = granted(scopes) }
			r := &returning{t: t, st: f.stage(t, "a", remembering, equipped), seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
			r.conn = r.st.enter(startText, as)
			model := r.st.fake.Accept(t)
			synctest.Wait()
			r.read(-1)
			hasClock(t, model, model.Setup().Tools, has, "c1")
			f.kill("a")
			r.st = f.stage(t, "b", remembering, equipped)
			r.conn = r.st.enter(r.start(""), as)
			next := r.st.fake.Accept(t)
			synctest.Wait()
			if m := r.conn.last(t, "session.started"); m["resumed"] != true {
				t.Fatalf("the client got %v", m)
			}
			hasClock(t, next, next.Setup().Tools, has, "c2")
		})
	}
}

// TestClientToolNeedsNoScope: a client's own tools are available to every user.
func TestClientToolNeedsNoScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Tools = guarded(t).Snapshot })
		declared, err := json.Marshal(map[string]any{"name": "scroll", "description": "Scrolls the page."})
		if err != nil {
			t.Fatal(err)
		}
		st.connect(startWithTools(string(declared)))
		got := names(st.fake.Accept(t).Setup().Tools)
		if !slices.Equal(got, []string{spec.DescribeTool, "scroll", "watch"}) {
			t.Errorf("the model has the tools %v", got)
		}
	})
}
