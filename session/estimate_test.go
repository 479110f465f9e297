package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// estimates is a stage whose model costs a micro-dollar for each token of any kind.
func estimates(t *testing.T, policy orchestrator.Policy) (*stage, *meter.Meter) {
	t.Helper()
	table, err := cost.Parse("prices", []byte("version: 1\ndate: 2026-11-25\nprices: [{models: [fake-model], source: s, input: {text: 1, audio: 1}, output: {text: 1, audio: 1}}]"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := meter.New(context.Background(), meter.Options{Store: storetest.NewUsage(), Node: "a", User: auth.Limits{}})
	if err != nil {
		t.Fatal(err)
	}
	taking := hearing
	taking.AddItem = transport.AddItemLive
	st := newStage(t, taking, func(o *Options) {
		o.Usage, o.Policy, o.Prices = m, policy, table
		if fake, ok := o.Transports["fake"].(*fakeModel); ok {
			fake.Info.Model = "fake-model"
		}
	})
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return st, m
}

// TestUsageIsEstimated: without reports from the model, usage is estimated from the words and audio, and each turn says
// so. The earlier conversation counts as input.
func TestUsageIsEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := estimates(t, orchestrator.Policy{})
		c, model := st.started()
		usage := func() map[string]any { return c.last(t, "turn.ended")["usage"].(map[string]any) }
		c.say(`{"type":"input.text","text":"12345678"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.") // 100 ms of speech, and 10 bytes
		if u := usage(); u["estimated"] != true || u["input_tokens"] != 2. || u["output_tokens"] != 5. {
			t.Errorf("the first turn has used %v", u)
		}
		c.say(`{"type":"input.text","text":"1234"}`)
		synctest.Wait()
		answers(c, model, "r2", "a2", "Yes.")
		if u := usage(); u["estimated"] != true || u["input_tokens"] != 6.+2 || u["output_tokens"] != 3. {
			t.Errorf("the second turn has used %v", u)
		}
		c.say(`{"type":"input.text","text":"1234"}`)
		synctest.Wait()
		model.Emit(transport.Usage{Tokens: transport.Tokens{Input: 7, InputText: 7}})
		answers(c, model, "r3", "a3", "Yes.")
		if u := usage(); u["estimated"] != nil || u["input_tokens"] != 7. || u["output_tokens"] != 0. {
			t.Errorf("a reported turn has used %v", u)
		}
		want := cost.Amount{Micros: 2 + 5 + 8 + 3 + 7, Estimated: 2}
		if got := st.m.Sessions()[0].Cost; got != want {
			t.Errorf("the session has cost %+v, want %+v", got, want)
		}
	})
}

// TestContextIsEstimated: the model's input includes the context from the page, and the gateway's words around it.
func TestContextIsEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := estimates(t, orchestrator.Policy{})
		c, model := st.started()
		c.say(tellPage("The user is looking at order 42."))
		synctest.Wait()
		model.NextControl(t)
		c.say(`{"type":"input.text","text":"12345678"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "Yes.")
		u := c.last(t, "turn.ended")["usage"].(map[string]any)
		if least := float64(len(prompts.PageContext("The user is looking at order 42.")) / 4); u["estimated"] != true || u["input_tokens"].(float64) < least {
			t.Errorf("the turn has used %v, want at least %g tokens of input", u, least)
		}
	})
}

// TestEstimatesCountForLimits: a session without usage reports ends at its cost limit.
func TestEstimatesCountForLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := estimates(t, orchestrator.Policy{MaxCost: 10})
		c, model := st.started()
		for i := range 5 {
			c.say(`{"type":"input.text","text":"12345678"}`)
			synctest.Wait()
			answers(c, model, "r"+string(rune('0'+i)), "a"+string(rune('0'+i)), "In Vienna.")
			synctest.Wait()
			if c.isOver() {
				break
			}
		}
		c.expect(t, "session.ended budget")
	})
}

// TestReportReplacesEstimate: a turn that ends before the model's report is estimated. A later report replaces the
// estimate in every sum, and the next turn has only its own usage.
func TestReportReplacesEstimate(t *testing.T) {
	reports := func(model *fakeConn, tokens int64) {
		model.Emit(transport.Usage{Tokens: transport.Tokens{Input: tokens, InputText: tokens}})
		synctest.Wait()
	}
	asks := func(c *testClient, text string) {
		c.say(`{"type":"input.text","text":"` + text + `"}`)
		synctest.Wait()
	}
	for name, first := range map[string]func(*testClient, *fakeConn){
		"after the end": func(c *testClient, model *fakeConn) {
			answers(c, model, "r1", "a1", "In Vienna.")
			reports(model, 20)
			asks(c, "1234")
		},
		"in two parts": func(c *testClient, model *fakeConn) {
			answers(c, model, "r1", "a1", "In Vienna.")
			reports(model, 15)
			reports(model, 5)
			asks(c, "1234")
		},
		"after the next question": func(c *testClient, model *fakeConn) {
			model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "In Vienna.", Final: true})
			model.EmitAudio("a1", make([]byte, 4800))
			synctest.Wait()
			asks(c, "1234")
			reports(model, 20)
			model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseInterrupted})
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, m := estimates(t, orchestrator.Policy{})
				c, model := st.started()
				asks(c, "12345678")
				first(c, model)
				if u := c.last(t, "turn.ended")["usage"].(map[string]any); u["estimated"] != true {
					t.Errorf("the first turn has used %v", u)
				}
				model.Emit(transport.ResponseStarted{ID: "r2"})
				reports(model, 7)
				answers(c, model, "r2", "a2", "Yes.")
				if u := c.last(t, "turn.ended")["usage"].(map[string]any); u["estimated"] != nil || u["input_tokens"] != 7. || u["output_tokens"] != 0. {
					t.Errorf("the second turn has used %v", u)
				}
				want := cost.Amount{Micros: 27}
				if got := st.m.Sessions()[0].Cost; got != want {
					t.Errorf("the session has cost %+v, want %+v", got, want)
				}
				days, _, err := m.Report(t.Context(), meter.Filter{First: time.Now(), Last: time.Now()})
				if err != nil || len(days) != 1 || days[0].Amount != want || days[0].Tokens != (cost.Usage{InputText: 27}) {
					t.Errorf("the meter has %+v, %v", days, err)
				}
			})
		})
	}
}
