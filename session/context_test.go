package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/transport"
)

func tellPage(text string) string { return fmt.Sprintf(`{"type":"input.context","text":%q}`, text) }

// TestContext: the page's context reaches a model that supports it, with the gateway's mark, and begins no turn. Empty
// or long context, and a model without support, cause an error.
func TestContext(t *testing.T) {
	taking := hearing
	taking.AddItem = transport.AddItemLive
	for name, tc := range map[string]struct {
		caps transport.Capabilities
		says string
		err  string
		ref  string
	}{
		"a model with support":    {taking, tellPage("order 42"), "", ""},
		"the longest":             {taking, tellPage(strings.Repeat("é", protocol.MaxContextBytes/2)), "", ""},
		"a model without support": {hearing, tellPage("order 42"), "not_available", "input.context"},
		"empty":                   {taking, tellPage(" "), "invalid_message", "text"},
		"too long":                {taking, tellPage(strings.Repeat("é", protocol.MaxContextBytes/2) + "."), "invalid_message", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, tc.caps, nil)
				c, model := st.started()
				c.say(tc.says)
				synctest.Wait()
				if takes := c.last(t, "session.started")["context"]; takes != (map[bool]any{true: true}[tc.caps.AddItem != transport.AddItemNone]) {
					t.Errorf("session.started says context: %v", takes)
				}
				if tc.err != "" {
					if e := c.last(t, "error"); e["code"] != tc.err || e["ref"] != tc.ref || len(model.Commands()) != 0 {
						t.Errorf("the error is %v", e)
					}
					return
				}
				got, ok := model.NextControl(t).(transport.AddItem)
				if said, isUser := got.Item.(transport.PastUser); !ok || !isUser || !strings.HasPrefix(said.Text, "[voicegw:") || !strings.Contains(tc.says, said.Text[len(said.Text)-8:]) {
					t.Errorf("the model got %#v", got)
				}
				if c.count("turn.started")+c.count("transcript")+c.count("error") != 0 {
					t.Errorf("the client got %v", c.log())
				}
			})
		})
	}
}

// TestContextOnAnotherConnection: the next connection gets the earlier context, marked as the page's, and the waiting
// context.
func TestContextOnAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taking := remembering
		taking.AddItem = transport.AddItemIdle
		st := newStage(t, taking, nil)
		c, model := st.started()
		c.say(tellPage("order 42"))
		synctest.Wait()
		release := st.fake.StallConnect()
		model.FailRecv(broken())
		synctest.Wait()
		c.say(tellPage("order 43"))
		synctest.Wait()
		if c.count("error") != 0 {
			t.Errorf("the client got %v", c.log())
		}
		release()
		next := st.fake.Accept(t)
		synctest.Wait()
		setups := st.fake.Setups()
		received := setups[len(setups)-1].History
		if len(received) != 1 {
			t.Fatalf("the next connection gets %v", received)
		}
		if said, ok := received[0].(transport.PastUser); !ok || !strings.HasSuffix(said.Text, "order 42") || !strings.HasPrefix(said.Text, "[voicegw:") {
			t.Errorf("the next connection gets %#v", received[0])
		}
		got, ok := next.NextControl(t).(transport.AddItem)
		if said, _ := got.Item.(transport.PastUser); !ok || !strings.HasSuffix(said.Text, "order 43") {
			t.Errorf("the next connection gets %#v", got)
		}
	})
}

// TestContextInCheckpoints: a checkpoint contains delivered context in the conversation, and waiting context
// separately.
func TestContextInCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		taking := resuming
		taking.AddItem = transport.AddItemIdle
		st := newStage(t, taking, func(o *Options) {
			o.Policy, o.Cluster = orchestrator.Policy{ResumeGrace: 30 * time.Second}, f.node("a")
		})
		c, model := st.started()
		synctest.Wait()
		id := c.last(t, "session.started")["session_id"].(string)
		c.say(tellPage("order 42"))
		synctest.Wait()
		if kept, r := f.checkpoint(t, id); len(kept.History) != 1 || kept.History[0].Role != conversation.RoleContext || kept.History[0].Text != "order 42" || len(r.State.Contexts) != 0 {
			t.Errorf("given: %+v, %+v", kept, r)
		}
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		model.Emit(transport.ResponseStarted{ID: "r1"})
		synctest.Wait()
		c.say(tellPage("order 43"))
		synctest.Wait()
		if kept, r := f.checkpoint(t, id); len(kept.History) != 2 || len(r.State.Contexts) != 1 || r.State.Contexts[0] != "order 43" {
			t.Errorf("waiting: %+v, %+v", kept, r)
		}
	})
}

// TestContextThatWaitsAtTheEnd: context that arrived while the model spoke belongs to the conversation when the session
// ends. If the session moves, the next gateway sends it to the model.
func TestContextThatWaitsAtTheEnd(t *testing.T) {
	for name, moves := range map[string]bool{"it is over": false, "it moves": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk, all, taking := &keepsDesk{}, &givers{}, remembering
				taking.AddItem = transport.AddItemIdle
				st := newStage(t, taking, func(o *Options) {
					o.Handoffs, o.Cluster, o.Policy = desk, all, orchestrator.Policy{ResumeGrace: 30 * time.Second}
				})
				a, err := st.m.Admit(someone, Coming{})
				if err != nil {
					t.Fatal(err)
				}
				c := newTestClient()
				c.say(adaStart)
				st.m.Start(a, c)
				model := st.fake.Accept(t)
				c.say(`{"type":"input.text","text":"where is Ada"}`)
				synctest.Wait()
				model.Emit(transport.ResponseStarted{ID: "r1"})
				synctest.Wait()
				c.say(tellPage("order 43"))
				synctest.Wait()
				inAll := func(said handoff.Part) (n int) {
					for _, e := range said.Entries {
						if e.Role == conversation.RoleContext && e.Text == "order 43" {
							n++
						}
					}
					return n
				}
				if !moves {
					st.m.End(c.last(t, "session.started")["session_id"].(string))
					synctest.Wait()
					c.ended(t, protocol.CloseDone)
					if n := inAll(desk.last); n != 1 {
						t.Errorf("the conversation contains it %d times: %+v", n, desk.last.Entries)
					}
					return
				}
				st.drain(4 * time.Second)()
				c.ended(t, protocol.CloseMoving)
				kept, _ := desk.newest()
				given := all.of(0).given
				if len(given) != 1 || !strings.Contains(string(given[0].State), `"contexts":["order 43"]`) || inAll(kept) != 0 {
					t.Errorf("the next gateway gets %+v, and the conversation has %+v", given, kept.Entries)
				}
			})
		})
	}
}
