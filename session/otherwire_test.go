package session

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// answering is a model that answers on request and accepts everything while it runs, like OpenAI's.
var answering = with(live, func(c *transport.Capabilities) { c.AddItem = transport.AddItemLive })

// startOther begins a session over another protocol.
func (st *stage) startOther(start *protocol.Start) (*testClient, *fakeConn) {
	st.t.Helper()
	if start.Extra == nil {
		start.Extra = &protocol.StartExtra{}
	}
	start.InputRate, start.OutputRate, start.Extra.Answers, start.Extra.AnyTools = 24000, 24000, true, true
	c := newTestClient()
	c.in <- protocol.Input{Message: start}
	st.m.Start(st.admit(someone), c)
	model := st.fake.Accept(st.t)
	synctest.Wait()
	return c, model
}

func (c *testClient) sends(m protocol.ClientMessage) {
	c.in <- protocol.Input{Message: m}
	synctest.Wait()
}

// TestOtherWireBegins: a client of another protocol replaces instructions and tuning, brings history and tools with any
// schema, and gets no greeting.
func TestOtherWireBegins(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{
		"history in the setup": with(hearing, func(c *transport.Capabilities) { c.History = transport.HistoryContent }),
		"history as items":     answering,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, caps, func(o *Options) { o.Agent.Greeting, o.Agent.Instructions = "Say hello.", "You are the desk." })
				own := "You are a pirate."
				_, model := st.startOther(&protocol.Start{
					Tools: []protocol.ClientTool{{Name: "open", Schema: json.RawMessage(`{"type":"object","properties":{"any":{}}}`)}},
					Extra: &protocol.StartExtra{Instructions: &own, SilenceMS: 700, History: []protocol.AddItem{{Role: "user", Text: "My name is Ann."}}},
				})
				setup := model.Setup()
				if setup.Instructions != own || setup.SilenceMS != 700 || len(setup.Tools) != 1 || setup.Tools[0].Description != "open" {
					t.Errorf("the model was set up with %+v", setup)
				}
				past := setup.History
				for _, cmd := range model.Commands() {
					if item, ok := cmd.(transport.AddItem); ok {
						past = append(past, item.Item)
					} else {
						t.Errorf("the model got %#v", cmd)
					}
				}
				if !slices.Equal(past, []transport.Past{transport.PastUser{Text: "My name is Ann."}}) {
					t.Errorf("the model got the history %+v", past)
				}
			})
		})
	}
}

// TestAnswerEnded: the end of an answer's generation is reported after its audio and before the turn's end; that it
// waits for calls is reported once all calls are known.
func TestAnswerEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, answering, func(o *Options) { o.Executor = execute.New(execute.Options{Ledger: &storetest.Ledger{}}) })
		c, model := st.startOther(&protocol.Start{Tools: []protocol.ClientTool{{Name: "open", TimeoutMS: 60000}}})
		c.sends(&protocol.Respond{Instructions: "Greet Ann."})
		if got := model.Commands(); len(got) != 1 || got[0] != (transport.Respond{Instructions: "Greet Ann."}) {
			t.Fatalf("the model got %#v", got)
		}
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.ToolCall{Call: "c1", ID: "p1", Name: "open", Args: json.RawMessage(`{}`)})
		synctest.Wait()
		if c.count("internal.answer_ended") != 0 {
			t.Error("the answer ended before all its calls were known")
		}
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		if c.last(t, "internal.answer_ended")["waiting"] != true {
			t.Errorf("the client got %v", c.log())
		}
		c.sends(&protocol.ToolResult{CallID: c.last(t, "tool.call")["call_id"].(string), Result: json.RawMessage(`"done"`)})
		model.Emit(transport.ResponseStarted{ID: "r2"}, transport.Usage{Tokens: transport.Tokens{Input: 7, Output: 3}})
		model.EmitAudio("a1", make([]byte, 48000))
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		synctest.Wait()
		pass(3 * time.Second)
		synctest.Wait()
		c.expect(t, "turn.started", "tool.call", "internal.answer_ended", "audio.start a1", "audio 4800", "audio.end a1",
			"internal.answer_ended", "turn.ended completed")
		if n := c.count("internal.answer_ended"); n != 2 {
			t.Errorf("the end was reported %d times", n)
		}
		if used := c.last(t, "internal.answer_ended")["usage"].(map[string]any); used["output_tokens"] != 3.0 {
			t.Errorf("the usage is %v", used)
		}
	})
}

// TestClientReconfigures: new instructions and tools reach the model, equal ones do not, and a tool with the name of
// another one changes nothing.
func TestClientReconfigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, answering, func(o *Options) { o.Tools = twoTools(t).Snapshot })
		c, model := st.startOther(&protocol.Start{Tools: []protocol.ClientTool{{Name: "open"}}})
		before := len(model.Setup().Tools)
		c.sends(&protocol.Reconfigure{Tools: []protocol.ClientTool{{Name: "open"}}})
		c.sends(&protocol.Reconfigure{Tools: []protocol.ClientTool{{Name: "clock"}}})
		if e := c.last(t, "error"); e["ref"] != "tools[0].name" || len(model.Commands()) != 0 {
			t.Fatalf("the client got %v, and the model %#v", e, model.Commands())
		}
		own := "You are a pirate."
		c.sends(&protocol.Reconfigure{Instructions: &own, Tools: []protocol.ClientTool{{Name: "open"}, {Name: "shut"}}})
		got, ok := model.NextControl(t).(transport.Reconfigure)
		if !ok || got.Instructions != own || len(got.Tools) != before+1 {
			t.Errorf("the model got %+v", got)
		}
		if c.count("agent.switched") != 0 {
			t.Errorf("the client got %v", c.log())
		}
		model.Emit(transport.Reconfigured{})
		synctest.Wait()
		cause, ok := errors.AsType[*Cause](st.m.CheckTools([]protocol.ClientTool{{Name: "clock"}}))
		if !ok || cause.Field != "tools[0].name" || !strings.Contains(cause.Message, "clock") {
			t.Errorf("a tool with another's name: %+v", cause)
		}
	})
}

// TestChangesDuringAnAnswer: changes during an answer are combined until its end, also a change back.
func TestChangesDuringAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, answering, func(o *Options) { o.Agent.Instructions = "You are the desk." })
		c, model := st.startOther(&protocol.Start{})
		c.sends(&protocol.Respond{})
		model.Emit(transport.ResponseStarted{ID: "r1"})
		synctest.Wait()
		first, own := "You are a parrot.", "You are a pirate."
		c.sends(&protocol.Reconfigure{Instructions: &first})
		c.sends(&protocol.Reconfigure{Instructions: &own})
		c.sends(&protocol.Reconfigure{Tools: []protocol.ClientTool{{Name: "open"}}})
		model.EmitAudio("a1", make([]byte, 4800))
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		pass(time.Second)
		synctest.Wait()
		var got []transport.Reconfigure
		for _, cmd := range model.Commands() {
			if r, ok := cmd.(transport.Reconfigure); ok {
				got = append(got, r)
			}
		}
		if len(got) != 1 || got[0].Instructions != own || len(got[0].Tools) != 1 {
			t.Errorf("the model got %+v", got)
		}
		before := "You are the desk."
		c.sends(&protocol.Reconfigure{Instructions: &before, Tools: []protocol.ClientTool{{Name: "open"}}})
		if cmd, ok := model.Commands()[len(model.Commands())-1].(transport.Reconfigure); !ok || cmd.Instructions != before {
			t.Errorf("the change back: %+v", model.Commands())
		}
	})
}

// TestAudioAhead: a client of another protocol may send a file at once, and the model gets all of it, even late.
func TestAudioAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.AudioAhead = time.Second })
		c, model := st.startOther(&protocol.Start{Extra: &protocol.StartExtra{AudioAhead: 20 * time.Second}})
		release := model.StallSend()
		c.sends(&protocol.InputText{Text: "Listen."}) // the audio waits for it
		for range 25 {
			c.speak(make([]byte, audio.Bytes(24000, 400*time.Millisecond)))
		}
		synctest.Wait()
		release()
		synctest.Wait()
		if c.count("error") != 0 || len(model.Audio()) < audio.Bytes(16000, 9*time.Second) {
			t.Errorf("the model heard %d bytes; the client got %v", len(model.Audio()), c.log())
		}
	})
}

// TestCallsBeforeWaiting: the report that an answer waits for calls follows all of them, also if the model makes them
// at once and one is refused.
func TestCallsBeforeWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, answering, func(o *Options) { o.Executor = execute.New(execute.Options{Ledger: &storetest.Ledger{}}) })
		c, model := st.startOther(&protocol.Start{Tools: []protocol.ClientTool{{Name: "open"}, {Name: "shut"}}})
		c.sends(&protocol.Respond{})
		call := func(id, tool string) transport.ToolCall {
			return transport.ToolCall{Call: id, ID: "p-" + id, Name: tool, Args: json.RawMessage(`{}`)}
		}
		model.Emit(transport.ResponseStarted{ID: "r1"}, call("c1", "open"), call("c2", "nothing"), call("c3", "shut"),
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		c.expect(t, "turn.started", "tool.call", "tool.call", "internal.answer_ended")
		if n := c.count("internal.answer_ended"); n != 1 {
			t.Errorf("the waiting was reported %d times", n)
		}
	})
}

// TestTransfersOnce: the client of a phone call transfers it for an applied intent, not for a refused one.
func TestTransfersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := inspectStage(t, &audits{}, nil, registry.TransferCall("front"), registry.TransferCall("back"))
		c, model := st.startOther(&protocol.Start{Extra: &protocol.StartExtra{Transfers: []string{"front", "back"}}})
		callTool(model, "1", "act", `{}`)
		if n, m := c.count("internal.call_transfer"), c.last(t, "internal.call_transfer"); n != 1 || m["to"] != "front" {
			t.Errorf("%d transfers, the last %v: %v", n, m, c.log())
		}
	})
}
