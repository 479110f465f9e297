package session

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// live accepts other instructions in mid-call, and answers on request; alone accepts them and answers unasked.
var (
	live  = with(remembering, func(c *transport.Capabilities) { c.Reconfigure, c.RespondNeeded = transport.ReconfigureLive, true })
	alone = with(live, func(c *transport.Capabilities) { c.RespondNeeded = false })
)

// troupe are two agents that may hand over to each other, and one that only an operator can choose.
func troupe() *cast {
	c := &cast{}
	back := []registry.SwitchTarget{{ID: "desk", Name: "Desk"}}
	c.put(Agent{Name: "desk", Version: "d1", Instructions: "You are the desk.", SwitchTo: []registry.SwitchTarget{{ID: "billing", Name: "Billing", Description: "Invoices"}, {ID: "gone"}, {ID: "desk"}}})
	c.put(Agent{Name: "billing", Version: "b1", Instructions: "You are billing.", Tools: []string{"clock"}, SwitchTo: back})
	c.put(Agent{Name: "boss", Version: "x1", Instructions: "You are the boss."})
	return c
}

// handOver makes a model call agent_switch.
func handOver(model *fakeConn, to, call string) {
	model.Emit(
		transport.ResponseStarted{ID: "r-" + call},
		transport.ToolCall{Call: call, ID: "provider_" + call, Name: spec.AgentSwitch, Args: json.RawMessage(`{"agent":"` + to + `","reason":"their task"}`)},
		transport.ResponseDone{ID: "r-" + call, Status: transport.ResponseCompleted},
	)
	synctest.Wait()
}

// switchStage is a session of the desk in which the user has asked something.
func switchStage(t *testing.T, caps transport.Capabilities) (st *stage, c *testClient, model *fakeConn, lines *[]audit.Record) {
	t.Helper()
	lines = new([]audit.Record)
	var mu sync.Mutex // guards lines, which are read when all goroutines wait
	st = newStage(t, caps, func(o *Options) {
		o.Agents, o.Tools = troupe(), twoTools(t).Snapshot
		o.Policy.Tools.Budget = roomy
		o.Audit = func(r audit.Record) {
			mu.Lock()
			defer mu.Unlock()
			*lines = append(*lines, r)
		}
	})
	c = st.connect(strings.Replace(startBilling, "billing", "desk", 1))
	model = st.fake.Accept(t)
	synctest.Wait()
	c.say(`{"type":"input.text","text":"my bill is wrong"}`)
	synctest.Wait()
	return st, c, model, lines
}

// kinds lists the commands to a model by their types, except audio.
func kinds(model *fakeConn) (list []string) {
	for _, cmd := range model.Commands() {
		switch cmd.(type) {
		case transport.UserText:
			list = append(list, "text")
		case transport.ToolResult:
			list = append(list, "result")
		case transport.Reconfigure:
			list = append(list, "reconfigure")
		case transport.Respond:
			list = append(list, "respond")
		}
	}
	return list
}

func reconfigured(model *fakeConn) (all []transport.Reconfigure) {
	for _, cmd := range model.Commands() {
		if r, ok := cmd.(transport.Reconfigure); ok {
			all = append(all, r)
		}
	}
	return all
}

// TestSwitchLive: the model gets the next agent's instructions and tools, also the one for the way back, before it
// answers; the client, the list of sessions, the audit and the tools know the new agent.
func TestSwitchLive(t *testing.T) {
	for _, c := range []struct {
		name  string
		caps  transport.Capabilities
		order []string
	}{
		{"on request", live, []string{"text", "result", "reconfigure", "respond"}},
		{"unasked", alone, []string{"text", "reconfigure", "result"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, client, model, lines := switchStage(t, c.caps)
				setup := model.Setup()
				at := slices.IndexFunc(setup.Tools, func(tool transport.Tool) bool { return tool.Name == spec.AgentSwitch })
				if at < 0 || !strings.Contains(string(setup.Tools[at].Parameters), `"enum":["billing"]`) {
					t.Fatalf("the desk has the tools %v", names(setup.Tools))
				}
				handOver(model, "billing", "c1")
				model.Emit(transport.Reconfigured{})
				synctest.Wait()
				if got := kinds(model); !slices.Equal(got, c.order) {
					t.Errorf("the model got %v, want %v", got, c.order)
				}
				got := reconfigured(model)
				if len(got) != 1 || got[0].Instructions != "You are billing." || !slices.Equal(names(got[0].Tools), []string{spec.AgentSwitch, "clock", spec.DescribeTool}) {
					t.Fatalf("the model was reconfigured with %+v", got)
				}
				if m := client.last(t, "agent.switched"); m["from"] != "desk" || m["to"] != "billing" || m["reason"] != "their task" {
					t.Errorf("the client got %v", m)
				}
				if s := st.m.Sessions()[0]; s.Agent != "billing" || s.AgentVersion != "b1" {
					t.Errorf("the session is listed as %+v", s)
				}
				if i := slices.IndexFunc(*lines, func(r audit.Record) bool { return r.Event == audit.EventAgent }); i < 0 || (*lines)[i].Agent != "billing" || (*lines)[i].From != "desk" {
					t.Errorf("the audit has %+v", *lines)
				}
				answers(client, model, "r2", "a1", "I see your bill.")
				client.say(`{"type":"input.text","text":"and the desk again"}`)
				synctest.Wait()
				asked(model, "watch", "c2")
				if env := results(t, model)["c2"]; env.OK || env.Error.Type != registry.ErrorNotFound {
					t.Errorf("a tool of the desk answers %+v", env)
				}
				handOver(model, "desk", "c3")
				if got := reconfigured(model); len(got) != 2 || got[1].Instructions != "You are the desk." {
					t.Errorf("the model was reconfigured with %+v", got)
				}
				// The next connection starts with the current agent.
				model.FailRecv(broken())
				next := st.fake.Accept(t)
				synctest.Wait()
				if got := next.Setup(); got.Instructions != "You are the desk." {
					t.Errorf("the next connection begins as %q", got.Instructions)
				}
			})
		})
	}
}

// TestSwitchOverAnotherConnection: a model that accepts no other instructions gets nothing more, and the next
// connection starts with the next agent.
func TestSwitchOverAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, client, model, _ := switchStage(t, resuming)
		handOver(model, "billing", "c1")
		next := st.fake.Accept(t)
		synctest.Wait()
		model.WaitClosed(t)
		if got := kinds(model); !slices.Equal(got, []string{"text"}) {
			t.Errorf("the model of the desk got %v", got)
		}
		setup := next.Setup()
		if setup.Instructions != "You are billing." || setup.ResumeHandle != "" || len(setup.History) == 0 || !slices.Contains(names(setup.Tools), "clock") || slices.Contains(names(setup.Tools), "watch") {
			t.Errorf("the next connection begins with %+v", setup)
		}
		texts := next.Commands()
		if len(texts) != 1 || !strings.Contains(texts[0].(transport.UserText).Text, "taken over this conversation as billing") {
			t.Errorf("the next agent got %+v", texts)
		}
		answers(client, next, "r1", "a1", "I see your bill.")
		client.expect(t, "turn.started", "agent.switched", "provider.reconnecting", "provider.reconnected", "audio.start l2.a1", "turn.ended completed")
		if m := client.last(t, "provider.reconnected"); m["reason"] != "agent_switch" {
			t.Errorf("the client got %v", m)
		}
	})
}

// TestSwitchKeepsClientTools: a client's tools are available to each agent, on the same connection and on a new one.
func TestSwitchKeepsClientTools(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"live": live, "another connection": resuming} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, caps, func(o *Options) { o.Agents, o.Tools, o.Policy.Tools.Budget = troupe(), twoTools(t).Snapshot, roomy })
				c := st.connect(strings.Replace(startWithTools(look), "{", `{"agent":"desk",`, 1))
				model := st.fake.Accept(t)
				synctest.Wait()
				c.say(`{"type":"input.text","text":"my bill is wrong"}`)
				synctest.Wait()
				handOver(model, "billing", "c1")
				var tools []transport.Tool
				if name == "live" {
					tools = reconfigured(model)[0].Tools
				} else {
					next := st.fake.Accept(t)
					synctest.Wait()
					model, tools = next, next.Setup().Tools
				}
				if got, want := names(tools), []string{spec.AgentSwitch, "clock", spec.DescribeTool, "look"}; !slices.Equal(got, want) {
					t.Errorf("the next agent has the tools %v, want %v", got, want)
				}
				model.Emit(transport.Reconfigured{})
				synctest.Wait()
				model.Emit(transport.ResponseStarted{ID: "r2"}, transport.ToolCall{Call: "c2", ID: "id-c2", Name: "look", Args: json.RawMessage(`{}`)}, transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
				synctest.Wait()
				if m := c.last(t, "tool.call"); m["name"] != "look" {
					t.Errorf("the client was asked %v", m)
				}
			})
		})
	}
}

// TestClientToolName: a client's tool must not have the name of any agent's tool, because another agent may continue
// the session.
func TestClientToolName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, live, func(o *Options) { o.Agents, o.Tools = troupe(), twoTools(t).Snapshot })
		c := st.connect(strings.Replace(startWithTools(`{"name":"watch","description":"Mine."}`), "{", `{"agent":"billing",`, 1))
		synctest.Wait()
		if e := c.last(t, "error"); e["code"] != "invalid_message" || e["ref"] != "tools[0].name" {
			t.Errorf("refused with %v", e)
		}
	})
}

// TestSwitchWhileConnecting: a connection opened for the previous agent is not used.
func TestSwitchWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _, model, _ := switchStage(t, remembering)
		release := st.fake.StallConnect()
		model.FailRecv(broken())
		synctest.Wait()
		id := st.m.Sessions()[0].ID
		if err := st.m.SwitchAgent(id, "boss", ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		release()
		first := st.fake.Accept(t)
		second := st.fake.Accept(t)
		synctest.Wait()
		if a, b := first.Setup().Instructions, second.Setup().Instructions; a != "You are the desk." || b != "You are the boss." {
			t.Errorf("the connections begin as %q and %q", a, b)
		}
		first.WaitClosed(t)
	})
}

// TestSwitchByAnOperator: an operator may choose any agent, even if the current agent may not hand over to it. An
// impossible switch is refused immediately.
func TestSwitchByAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, client, model, _ := switchStage(t, live)
		id := st.m.Sessions()[0].ID
		for _, agent := range []string{"nobody", "desk", ""} {
			if err := st.m.SwitchAgent(id, agent, ""); !errors.Is(err, ErrAgent) {
				t.Errorf("a switch to %q: %v", agent, err)
			}
		}
		if err := st.m.SwitchAgent("voice-unknown", "boss", ""); !errors.Is(err, ErrNotHere) {
			t.Errorf("a switch of no session: %v", err)
		}
		answers(client, model, "r1", "a1", "Let me see.")
		if err := st.m.SwitchAgent(id, "boss", "a complaint"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		pass(time.Second)
		if got := reconfigured(model); len(got) != 1 || got[0].Instructions != "You are the boss." {
			t.Errorf("the model was reconfigured with %+v", got)
		}
		if m := client.last(t, "agent.switched"); m["to"] != "boss" || m["reason"] != "a complaint" {
			t.Errorf("the client got %v", m)
		}
	})
}

// TestImpossibleSwitch: a model that accepts neither other instructions nor a history keeps its agent, and learns that
// the switch failed.
func TestImpossibleSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, model, _ := switchStage(t, hearing)
		handOver(model, "billing", "c1")
		if env := results(t, model)["c1"]; env.OK || env.Error.Type != registry.ErrorNotFound {
			t.Errorf("the switch answers %+v", env)
		}
		if client.count("agent.switched") != 0 {
			t.Errorf("the client got %q", client.log())
		}
	})
}

// TestPromptInForce: the prompt is the one that the model got for the current agent, without the mark of the gateway's
// own messages.
func TestPromptInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var code string
		st := newStage(t, resuming, func(o *Options) {
			o.Agents, o.Tools = troupe(), twoTools(t).Snapshot
			o.Policy.Tools.Budget = roomy
			o.Instructions = func(a *Agent, _ *registry.Snapshot, own prompts.Mark, _ string) string {
				code = own.Code()
				return a.Instructions + " Obey " + own.Text() + "."
			}
		})
		c := st.connect(strings.Replace(startBilling, "billing", "desk", 1))
		model := st.fake.Accept(t)
		synctest.Wait()
		id := st.m.Sessions()[0].ID
		p, err := st.m.Prompt(id)
		received := model.Setup()
		if want := strings.ReplaceAll(received.Instructions, code, "…"); err != nil || code == "" || p.Instructions != want || !strings.Contains(want, "[voicegw:…]") || p.Agent != "desk" || len(p.Tools) != len(received.Tools) {
			t.Errorf("%v %+v, and the model got %q", err, p, received.Instructions)
		}
		c.say(`{"type":"input.text","text":"my bill is wrong"}`)
		synctest.Wait()
		handOver(model, "billing", "c1")
		st.fake.Accept(t)
		synctest.Wait()
		if p, err := st.m.Prompt(id); err != nil || p.Agent != "billing" || !strings.HasPrefix(p.Instructions, "You are billing.") || strings.Contains(p.Instructions, code) {
			t.Errorf("after the switch: %v %+v", err, p)
		}
		if _, err := st.m.Prompt("voice-nobody"); !errors.Is(err, ErrNotHere) {
			t.Error("a session that does not run has a prompt")
		}
	})
}
