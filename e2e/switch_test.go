package e2e

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session"
)

// troupe contains a test's agents by name. It is immutable.
type troupe map[string]*session.Agent

func (t troupe) Agent(name string) *session.Agent { return t[name] }

func (t troupe) Pinned(_ context.Context, name, _ string) *session.Agent { return t[name] }

func (t troupe) Names() []string { return slices.Sorted(maps.Keys(t)) }

// deskAndBilling hand off to each other. Their answers show the model's tools.
func deskAndBilling() troupe {
	return troupe{
		"desk":    {Name: "desk", Version: "d1", Instructions: "You are the desk.", Tools: []string{"lookup", "slow"}, SwitchTo: []registry.SwitchTarget{{ID: "billing", Name: "Billing"}}},
		"billing": {Name: "billing", Version: "b1", Instructions: "You are billing.", Tools: []string{"forecast", "pay"}, SwitchTo: []registry.SwitchTarget{{ID: "desk", Name: "Desk"}}},
	}
}

const switchScenario = `
name: switching
rules:
  - when: {text: '^my colour is (\w+)'}
    do: [{say: Noted.}]
  - when: {text: '^what is my colour', remembers: '^user: .*colour is (\w+)'}
    do: [{say: "It is ${1}."}]
  - when: {text: '^who are you', declared: lookup}
    do: [{say: I am the desk.}]
  - when: {text: '^who are you', declared: forecast}
    do: [{say: I am billing.}]
  - when: {text: '^send me back and forth', declared: lookup}
    do:
      - call: {tool: agent_switch, args: {agent: billing, reason: a riddle}}
      - then:
          - call: {tool: agent_switch, args: {agent: desk, reason: a riddle}}
          - on_error: [say: I keep it.]
  - when: {text: '^my bill', declared: lookup}
    do:
      - call: {tool: agent_switch, args: {agent: billing, reason: a bill, message: The bill of May is wrong.}}
      - then: [say: I see the bill.]
  - when: {text: '^give me to nobody', declared: lookup}
    do:
      - call: {tool: agent_switch, args: {agent: nobody, reason: a bill}}
      - then: [say: I should not say this.]
      - on_error: [say: I cannot do that.]
  - when: {text: '^do it slowly', declared: lookup}
    do:
      - call: [{tool: slow}, {tool: agent_switch, args: {agent: billing, reason: a bill}}]
      - then: [say: Both are done.]
  - when: {text: '^then pay it', declared: pay}
    do:
      - call: {tool: pay, args: {amount: 3, to: Ada}}
      - then: [say: It is paid.]
      - on_error: [say: It waits for you.]
  - when: {text: '^to the desk', declared: forecast}
    do:
      - call: {tool: agent_switch, args: {agent: desk, reason: the user wishes it}}
      - then: [say: This is the desk.]
  - when: {text: 'The bill of May', declared: forecast}
    do: [{say: I see the bill.}]
  - when: {text: 'slow', declared: forecast}
    do: [{say: Both are done.}]
  - when: {text: any, declared: forecast}
    do: [{say: This is billing.}]
  - when: {text: any, declared: lookup}
    do: [{say: This is the desk.}]
  - when: {utterance: any}
    do: [{say: I heard you.}]
`

// switchRows are the models that switch agents on their connection, or on a new one.
var switchRows = []struct {
	provider, model string
	live            bool
}{
	{"openai", "", true},
	{"gemini", "gemini-3.8-live", true},
	{"gemini", "gemini-3.1-flash-live-preview", false},
	{"gemini", "gemini-2.5-flash-native-audio-preview-12-2025", false},
}

// overSwitches runs a test that begins with the desk for each row, in bubbles.
func overSwitches(t *testing.T, test func(t *testing.T, live bool, st *stack, c *client, tools *stage)) {
	t.Helper()
	for _, row := range switchRows {
		t.Run(cmp.Or(row.model, row.provider), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tools := newStageOn(t, nil)
				set := setting{timed: true, scenario: switchScenario, limits: linkLimits, tools: tools.box, firstAudioMS: 100, speed: 50, playback: 50, model: row.model, agents: deskAndBilling()}
				set.policy.NudgeAfter, set.policy.NoAnswerAfter = 10*time.Second, 15*time.Second
				st := newStack(t, row.provider, set)
				c := st.connect(t)
				c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Agent: "desk"})
				if started := waitFor[*protocol.SessionStarted](c); started.Agent != "desk" {
					t.Fatalf("the session begins with %q", started.Agent)
				}
				test(t, row.live, st, c, tools)
			})
		})
	}
}

// hear expects the words of an answer.
func (c *client) hear(text, want string) {
	c.t.Helper()
	if r := c.asks(text); r.status != "completed" || r.errors != "" || r.words != want {
		c.t.Errorf("%q is answered with %+v, want %q; before that: %s", text, r, want, c.history())
	}
}

// switches lists the client's notices of agent changes.
func (c *client) switches() (list []string) {
	for _, m := range messages[*protocol.AgentSwitched](c) {
		list = append(list, m.From+" to "+m.To)
	}
	return list
}

// TestSwitchesAndBack: a call switches to another agent and back, twice. The next agent answers the open request in the
// same turn, each agent has its own tools, and each knows the conversation.
func TestSwitchesAndBack(t *testing.T) {
	t.Parallel()
	overSwitches(t, func(t *testing.T, live bool, st *stack, c *client, _ *stage) {
		c.hear("My colour is blue.", "Noted.")
		for range 2 {
			c.hear("My bill is wrong.", "I see the bill.")
			c.hear("Who are you?", "I am billing.")
			c.hear("What is my colour?", "It is blue.")
			c.hear("To the desk, please.", "This is the desk.")
			c.hear("Who are you?", "I am the desk.")
			c.hear("What is my colour?", "It is blue.")
		}
		want := []string{"desk to billing", "billing to desk", "desk to billing", "billing to desk"}
		if got := c.switches(); !slices.Equal(got, want) {
			t.Errorf("the client got %v", got)
		}
		given, _ := st.links(t)
		if replaced := len(want); live && len(given) > 0 || !live && (len(given) != replaced || c.reconnections() != replaced) {
			t.Errorf("the client got %d notices of new connections, and the log has %+v", c.reconnections(), given)
		}
		calls, events := st.audit.wait(t, spec.AgentSwitch, 4), st.audit.events(audit.EventAgent)
		if len(events) != 4 || events[0].From != "desk" || events[0].Agent != "billing" || events[0].Why != "a bill" {
			t.Errorf("the audit has the switches %+v", events)
		}
		for i, r := range calls {
			if from := []string{"desk", "billing"}[i%2]; !r.OK || r.Agent != from || !r.Delivered && live {
				t.Errorf("call %d is audited ok=%t delivered=%t for %s, want %s", i, r.OK, r.Delivered, r.Agent, from)
			}
		}
	})
}

// TestRefusedSwitches: a switch to an unreachable agent is refused, and one back to an agent that has just handed off
// the user. The present agent continues and explains it.
func TestRefusedSwitches(t *testing.T) {
	t.Parallel()
	overSwitches(t, func(t *testing.T, live bool, st *stack, c *client, _ *stage) {
		c.hear("Give me to nobody.", "I cannot do that.")
		c.hear("Who are you?", "I am the desk.")
		if live { // over a new connection the model's next step is its own
			c.hear("Send me back and forth.", "I keep it.")
			c.hear("Who are you?", "I am billing.")
		}
		calls := 1
		if live {
			calls = 3
		}
		if r := st.audit.wait(t, spec.AgentSwitch, calls)[0]; r.OK || r.ErrorType != registry.ErrorValidation {
			t.Errorf("the call is audited as %+v", r)
		}
	})
}

// TestSwitchWhileAToolRuns: the switch waits for the result of a tool in the same answer, and happens once.
func TestSwitchWhileAToolRuns(t *testing.T) {
	t.Parallel()
	overSwitches(t, func(t *testing.T, _ bool, st *stack, c *client, tools *stage) {
		c.say(&protocol.InputText{Text: "Do it slowly."})
		tools.waitBegun(t, "slow")
		c.listens(time.Second)
		if got := c.switches(); len(got) > 0 {
			t.Errorf("while the tool runs the client got %v", got)
		}
		tools.release("slow")
		if r := c.answer(); r.status != "completed" || !strings.Contains(r.words, "Both are done.") {
			t.Errorf("the answer is %+v", r)
		}
		c.hear("Who are you?", "I am billing.")
		if got := c.switches(); !slices.Equal(got, []string{"desk to billing"}) {
			t.Errorf("the client got %v", got)
		}
		if r := st.audit.wait(t, "slow", 1)[0]; !r.OK {
			t.Errorf("the tool is audited as %+v", r)
		}
	})
}

// TestSwitchWithAnOpenQuestion: an agent's approval request stays open after a switch. The approved action runs once,
// in the name of the requesting agent.
func TestSwitchWithAnOpenQuestion(t *testing.T) {
	t.Parallel()
	overSwitches(t, func(t *testing.T, _ bool, st *stack, c *client, _ *stage) {
		c.hear("My bill is wrong.", "I see the bill.")
		c.hear("Then pay it.", "It waits for you.")
		question := messages[*protocol.ConfirmationRequest](c)
		if len(question) != 1 {
			t.Fatalf("%d questions", len(question))
		}
		c.hear("To the desk, please.", "This is the desk.")
		c.say(&protocol.ConfirmationResolve{Token: question[0].Token, Approved: true})
		waitFor[*protocol.ConfirmationEnded](c)
		c.answer() // to the result
		paid := false
		for _, r := range st.audit.wait(t, "pay", 2) {
			if r.Agent != "billing" || r.AgentVersion != "b1" || r.ToolVersion == "" {
				t.Errorf("a call of billing is audited for %q %q, of version %q", r.Agent, r.AgentVersion, r.ToolVersion)
			}
			paid = paid || r.OK
		}
		if !paid {
			t.Error("the approved action did not run")
		}
		c.hear("Who are you?", "I am the desk.")
	})
}

// TestSwitchAcrossABargeIn: the user interrupts the first words of the next agent, which stops and hears the rest.
func TestSwitchAcrossABargeIn(t *testing.T) {
	t.Parallel()
	overSwitches(t, func(t *testing.T, _ bool, _ *stack, c *client, _ *stage) {
		c.say(&protocol.InputText{Text: "My bill is wrong."})
		waitFor[*protocol.AgentSwitched](c)
		c.say(&protocol.InputText{Text: "Who are you?"})
		for {
			r := c.answer()
			if r.status == "" {
				t.Fatalf("the session ended: %s", c.history())
			}
			if strings.Contains(r.words, "I am billing.") {
				break
			}
		}
		if got := c.switches(); !slices.Equal(got, []string{"desk to billing"}) {
			t.Errorf("the client got %v", got)
		}
	})
}
