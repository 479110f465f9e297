package session

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// cast are the agents of a test, with their older versions.
type cast struct {
	mu  sync.Mutex // guards the following fields
	now map[string]*Agent
	old []*Agent
}

func (c *cast) put(a Agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		c.now = map[string]*Agent{}
	}
	c.now[a.Name] = &a
	c.old = append(c.old, &a)
}

func (c *cast) Agent(name string) *Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[name]
}

func (c *cast) Pinned(_ context.Context, name, version string) *Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.old {
		if a.Name == name && a.Version == version {
			return a
		}
	}
	return c.now[name]
}

func (c *cast) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.now {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func billing() Agent {
	return Agent{
		Name: "billing", Version: "b1", All: "all-1", Instructions: "You are billing.", Greeting: "Say billing.", Language: "de-DE",
		Voices: map[string]string{"fake": "Kore"}, Provider: "fake", Model: "fake-2", Tools: []string{"clock"},
		Budget: calls.Budget{Total: 1, ToolTime: -1},
	}
}

// twoTools returns a registry with the tools clock and watch.
func twoTools(t *testing.T) *registry.Registry {
	t.Helper()
	done := handlerFunc(func(context.Context) (registry.Result, error) { return registry.Result{}, nil }).bind()
	tools, err := registry.Load(registrytest.File(t, entry("clock", "1.0.0"), entry("watch", "1.0.0")),
		registry.Options{Handlers: map[string]registry.Handler{"clock": done, "watch": done}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

const startBilling = `{"type":"session.start","input_rate":16000,"output_rate":24000,"agent":"billing"}`

func names(tools []transport.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestAgentOfASession: the requested agent sets the model's instructions, voice, model, language, greeting, tools and
// budget. Without a request the session gets the configured agent.
func TestAgentOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cast{}
		c.put(billing())
		st := newStage(t, hearing, func(o *Options) {
			o.Agent = Agent{Instructions: "You are the default."}
			o.Agents, o.Tools = c, twoTools(t).Snapshot
			o.Policy.Tools.Budget = roomy
		})
		client := st.connect(startBilling)
		model := st.fake.Accept(t)
		synctest.Wait()
		setup := model.Setup()
		if setup.Instructions != "You are billing." || setup.Voice != "Kore" || setup.Model != "fake-2" || setup.Language != "de-DE" {
			t.Errorf("the model was set up with %+v", setup)
		}
		if got := names(setup.Tools); !slices.Equal(got, []string{"clock", spec.DescribeTool}) {
			t.Errorf("the model has the tools %v", got)
		}
		if m := client.last(t, "session.started"); m["agent"] != "billing" || m["agents_version"] != "all-1" || m["voice"] != "Kore" {
			t.Errorf("the client got %v", m)
		}
		if !slices.Contains(model.Commands(), transport.Command(transport.UserText{Text: "Say billing."})) {
			t.Errorf("no greeting in %+v", model.Commands())
		}
		if s := st.m.Sessions()[0]; s.Agent != "billing" || s.AgentVersion != "b1" {
			t.Errorf("the session is listed as %+v", s)
		}
		asked(model, "watch", "c1")
		if env := results(t, model)["c1"]; env.OK || env.Error.Type != registry.ErrorNotFound {
			t.Errorf("a tool of another agent answers %+v", env)
		}
		asked(model, "clock", "c2")
		if env := results(t, model)["c2"]; env.OK || env.Error.Type != registry.ErrorBudgetExceeded {
			t.Errorf("a call over the agent's budget answers %+v", env)
		}

		plain := st.connect(startText)
		setup = st.fake.Accept(t).Setup()
		synctest.Wait()
		if setup.Instructions != "You are the default." || setup.Model != "" || len(setup.Tools) != 3 {
			t.Errorf("the default agent's model was set up with %+v", setup)
		}
		if m := plain.last(t, "session.started"); m["agent"] != "default" || m["agents_version"] != nil {
			t.Errorf("the client of the default agent got %v", m)
		}
	})
}

// TestSessionKeepsItsAgent: an edit affects only later sessions. A replaced connection gets the setup of the first one.
func TestSessionKeepsItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cast{}
		c.put(billing())
		st := newStage(t, remembering, func(o *Options) { o.Agents, o.Policy.Relink = c, true })
		client := st.connect(startBilling)
		model := st.fake.Accept(t)
		synctest.Wait()
		edited := billing()
		edited.Version, edited.All, edited.Instructions = "b2", "all-2", "You are someone else."
		c.put(edited)
		model.FailRecv(&transport.Error{Op: "recv", Kind: transport.KindRetry, Err: errNoModel})
		again := st.fake.Accept(t)
		synctest.Wait()
		if got := again.Setup(); got.Instructions != "You are billing." || got.Model != "fake-2" || got.Voice != "Kore" {
			t.Errorf("the next connection was set up with %+v", got)
		}
		if s := st.m.Sessions()[0]; s.AgentVersion != "b1" {
			t.Errorf("the session has the agent's version %s", s.AgentVersion)
		}
		client.expect(t, "session.started")
		young := st.connect(startBilling)
		if got := st.fake.Accept(t).Setup().Instructions; got != "You are someone else." {
			t.Errorf("a new session has the instructions %q", got)
		}
		synctest.Wait()
		if m := young.last(t, "session.started"); m["agents_version"] != "all-2" {
			t.Errorf("its client got %v", m)
		}
	})
}

// TestTakeoverKeepsTheAgent: another node continues with the agent's version at the start of the session, else with its
// current version, and with the default agent if the agent is deleted.
func TestTakeoverKeepsTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		there []Agent
		want  string
	}{
		"the same version":     {[]Agent{billing(), {Name: "billing", Version: "b2", Instructions: "new"}}, "billing b1"},
		"only a newer version": {[]Agent{{Name: "billing", Version: "b2", Instructions: "new"}}, "billing b2"},
		"deleted":              {nil, "default "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, first, second := newShelf(), &cast{}, &cast{}
				first.put(billing())
				tools := twoTools(t)
				r, _ := beginsAtWith(t, f.stage(t, "a", remembering, func(o *Options) { o.Agents, o.Tools = first, tools.Snapshot }), startBilling)
				f.kill("a")
				for _, a := range c.there {
					second.put(a)
				}
				r.st = f.stage(t, "b", remembering, func(o *Options) { o.Agents, o.Tools = second, tools.Snapshot })
				r.comeBack(r.position())
				model := r.st.fake.Accept(t)
				synctest.Wait()
				s := r.st.m.Sessions()[0]
				if got := s.Agent + " " + s.AgentVersion; got != c.want {
					t.Errorf("the session continues with %q, want %q", got, c.want)
				}
				if c.want == "billing b1" {
					if setup := model.Setup(); setup.Instructions != "You are billing." || !slices.Equal(names(setup.Tools), []string{"clock", spec.DescribeTool}) {
						t.Errorf("its model was set up with %+v", setup)
					}
				}
				if rec := f.record(r.id); rec.Agent+" "+rec.AgentVersion != c.want {
					t.Errorf("the record names %s %s", rec.Agent, rec.AgentVersion)
				}
			})
		})
	}
}

// TestUnknownAgent: the error for an unknown agent lists the known ones. A provider other than the agent's is refused
// as well.
func TestUnknownAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cast{}
		c.put(billing())
		st := newStage(t, hearing, func(o *Options) {
			o.Agents, o.Transports["other"] = c, newFakeModel(hearing)
		})
		for start, want := range map[string]string{
			`{"type":"session.start","input_rate":16000,"output_rate":24000,"agent":"biling"}`:                     `There is no agent "biling" here; available: "default", "billing".`,
			`{"type":"session.start","input_rate":16000,"output_rate":24000,"agent":"billing","provider":"other"}`: `The agent "billing" uses only the provider "fake"; omit provider.`,
		} {
			client := st.connect(start)
			synctest.Wait()
			client.ended(t, protocol.CloseUnknownTarget)
			if m := client.last(t, "error"); m["message"] != want {
				t.Errorf("the client got %v", m)
			}
		}
	})
}
