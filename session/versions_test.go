package session

import (
	"context"
	"testing"
	"testing/synctest"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/transport"
)

// versioned returns a registry with the tools watch and clock; a share of the users gets version clock_next of clock.
func versioned(t *testing.T, share int) *registry.Registry {
	t.Helper()
	done := handlerFunc(func(context.Context) (registry.Result, error) { return registry.Result{Data: "done"}, nil }).bind()
	next := entry("clock_next", "2.0.0")
	next.VariantOf = "clock"
	tools, err := registry.Load(registrytest.File(t, entry("clock", "1.0.0"), next, entry("watch", "1.0.0")), registry.Options{
		Handlers: map[string]registry.Handler{"clock": done, "clock_next": done, "watch": done}, Settings: shares(share),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func shares(share int) map[string]registry.ToolSettings {
	return map[string]registry.ToolSettings{"clock_next": {Share: share}}
}

// answersWith calls clock and checks which version has answered.
func answersWith(t *testing.T, model *fakeConn, call, want string) {
	t.Helper()
	asked(model, "clock", call)
	if env := results(t, model)[call]; !env.OK || env.Meta.Tool != "clock" || env.Meta.ToolVersion != want {
		t.Errorf("call %s: answered by %q %q, want version %s", call, env.Meta.Tool, env.Meta.ToolVersion, want)
	}
}

// reshared changes the share of clock_next, as a reload does.
func reshared(t *testing.T, tools *registry.Registry, share int) {
	t.Helper()
	take, err := tools.Configure(shares(share), registry.Foreign{})
	if err != nil {
		t.Fatal(err)
	}
	take()
}

// TestSessionKeepsToolVersion: a session keeps its version of a tool with the next agent, although the shares have
// changed.
func TestSessionKeepsToolVersion(t *testing.T) {
	for share, want := range map[int]string{0: "1.0.0", 100: "2.0.0"} {
		synctest.Test(t, func(t *testing.T) {
			c := troupe()
			c.put(Agent{Name: "billing", Instructions: "You are billing.", Tools: []string{"clock", "watch"}})
			tools := versioned(t, share)
			st := newStage(t, live, func(o *Options) { o.Agents, o.Tools, o.Policy.Tools.Budget = c, tools.Snapshot, roomy })
			st.connect(startWith(`,"agent":"desk"`))
			model := st.fake.Accept(t)
			synctest.Wait()
			answersWith(t, model, "c1", want)
			reshared(t, tools, 100-share)
			handOver(model, "billing", "c2")
			model.Emit(transport.Reconfigured{})
			synctest.Wait()
			answersWith(t, model, "c3", want)
			next := reconfigured(model)
			if len(next) != 1 || !hasTool(next[0].Tools, "clock") || hasTool(next[0].Tools, "clock_next") {
				t.Errorf("the model was reconfigured with %+v", next)
			}
		})
	}
}

// TestToolVersionAfterTakeover: a session keeps its version on another node with other shares.
func TestToolVersionAfterTakeover(t *testing.T) {
	for share, want := range map[int]string{0: "1.0.0", 100: "2.0.0"} {
		synctest.Test(t, func(t *testing.T) {
			f := newShelf()
			equipped := func(share int) func(*Options) {
				return func(o *Options) { o.Tools, o.Policy.Tools.Budget = versioned(t, share).Snapshot, roomy }
			}
			as := func(*Admission) {}
			r := &returning{t: t, st: f.stage(t, "a", remembering, equipped(share)), seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
			r.conn = r.st.enter(startText, as)
			model := r.st.fake.Accept(t)
			synctest.Wait()
			r.read(-1)
			answersWith(t, model, "c1", want)
			f.kill("a")
			r.st = f.stage(t, "b", remembering, equipped(100-share))
			r.conn = r.st.enter(r.start(""), as)
			next := r.st.fake.Accept(t)
			synctest.Wait()
			if m := r.conn.last(t, "session.started"); m["resumed"] != true {
				t.Fatalf("the client got %v", m)
			}
			answersWith(t, next, "c2", want)
		})
	}
}

func hasTool(tools []transport.Tool, name string) bool {
	for _, tool := range tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}
