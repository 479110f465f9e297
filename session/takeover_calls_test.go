package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/store"
	"voicegw/transport"
)

// tillNodes are nodes that share the tools, the ledger and the questions of a till.
type tillNodes struct {
	*till
	shelf *shelf
	cast  *cast // billing, an agent that has only search
}

// onTillNodes runs a test with tillNodes.
func onTillNodes(t *testing.T, test func(t *testing.T, n tillNodes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := tillNodes{newTill(t, nil), newShelf(), &cast{}}
		n.cast.put(Agent{Name: "billing", Version: "b1", Instructions: "You are billing.", Tools: []string{"search"}})
		n.till.stage = n.node(t, "a")
		test(t, n)
	})
}

func (n tillNodes) node(t *testing.T, id string) *stage {
	t.Helper()
	return n.shelf.stage(t, id, remembering, func(o *Options) {
		o.Tools, o.Audit, o.Agents = n.registry.Snapshot, n.audited.add, n.cast
		o.Executor = execute.New(execute.Options{Ledger: n.ledger, Confirmations: n.questions})
	})
}

// takeOver kills node a, and makes r resume on node b.
func (n tillNodes) takeOver(t *testing.T, r *returning) *stage {
	t.Helper()
	r.read(-1)
	n.shelf.kill("a")
	return n.goOn(t, r)
}

// goOn makes r resume on node b.
func (n tillNodes) goOn(t *testing.T, r *returning) *stage {
	t.Helper()
	b := n.node(t, "b")
	r.st = b
	r.comeBack(r.position())
	r.read(-1)
	return b
}

// TestQuestionAfterTakeover (S5): a question from before a node's death is repeated to the client, and can be answered
// once: with the button, or by the API before or after the takeover.
func TestQuestionAfterTakeover(t *testing.T) {
	confirm := func(t *testing.T, b *stage, token string, received bool) {
		t.Helper()
		done, err := b.m.Confirm(t.Context(), token, true, user.User{})
		if err != nil || done.Told != received {
			t.Errorf("the API's answer: %+v, %v", done, err)
		}
		synctest.Wait()
	}
	for name, answer := range map[string]func(t *testing.T, n tillNodes, r *returning, token string) *stage{
		"the button": func(t *testing.T, n tillNodes, r *returning, token string) *stage {
			b := n.takeOver(t, r)
			if m := r.conn.last(t, "confirmation.request"); m["token"] != token || m["preview"] != "Pay 5 to Bob" {
				t.Errorf("the client was asked %v", m)
			}
			resolve(r.conn, token, true)
			return b
		},
		"the API after the takeover": func(t *testing.T, n tillNodes, r *returning, token string) *stage {
			b := n.takeOver(t, r)
			confirm(t, b, token, true)
			return b
		},
		"the API before the takeover": func(t *testing.T, n tillNodes, r *returning, token string) *stage {
			r.read(-1)
			n.shelf.kill("a")
			confirm(t, n.node(t, "c"), token, false)
			return n.goOn(t, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTillNodes(t, func(t *testing.T, n tillNodes) {
				c, model := n.talk()
				token := n.asksToPay(c, model, "u1")
				r := n.back(t, c)
				b := answer(t, n, r, token)
				next := b.fake.Accept(t)
				synctest.Wait()
				n.once(t)
				if m := r.conn.last(t, "confirmation.ended"); m["token"] != token || m["outcome"] != string(calls.OutcomeApproved) {
					t.Errorf("the client got %v", m)
				}
				if all := userTexts(next); len(all) != 1 || !strings.Contains(all[0], `"receipt":1`) {
					t.Errorf("the model got %q", all)
				}
				resolve(r.conn, token, true)
				r.conn.expect(t, "session.started", "confirmation.ended", "error confirmation_used")
				n.once(t)
			})
		})
	}
}

// TestQuestionOfAnotherAgent: the question of one agent is approved as that agent's call, although another agent, which
// lacks the tool, was active when the node died.
func TestQuestionOfAnotherAgent(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		token := n.asksToPay(c, model, "u1")
		if err := n.m.SwitchAgent(n.m.Sessions()[0].ID, "billing", "an invoice"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		pass(5 * time.Second)
		n.fake.Accept(t)
		synctest.Wait()
		r := n.back(t, c)
		b := n.takeOver(t, r)
		if got := b.m.Sessions(); len(got) != 1 || got[0].Agent != "billing" {
			t.Fatalf("the session continues as %+v", got)
		}
		resolve(r.conn, token, true)
		next := b.fake.Accept(t)
		synctest.Wait()
		n.once(t)
		if all := userTexts(next); len(all) != 1 || !strings.Contains(all[0], `"receipt":1`) {
			t.Errorf("the model got %q", all)
		}
	})
}

// TestCallLostWithItsNode (S3, S4): a call that ran when its node died is reported as lost once, to the client, the
// audit and the model; if the model repeats it, nothing runs twice.
func TestCallLostWithItsNode(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		n.takes = 5 * time.Second
		token := n.asksToPay(c, model, "u1")
		resolve(c, token, true)
		r := n.back(t, c)
		pass(time.Second)
		b := n.takeOver(t, r)
		next := b.fake.Accept(t)
		synctest.Wait()
		if m := r.conn.last(t, "tool.ended"); r.conn.count("tool.ended") != 1 || m["tool"] != "pay" || m["ok"] != false {
			t.Errorf("the client got %v", r.conn.log())
		}
		lost := 0
		for _, rec := range n.audited.list() {
			if rec.NotDelivered == "node_lost" && rec.ToolID == "pay" && rec.PartialSideEffects {
				lost++
			}
		}
		if lost != 1 {
			t.Errorf("the audit has %d records of the lost call", lost)
		}
		setups := b.fake.Setups()
		if past := fmt.Sprintf("%s", setups[len(setups)-1].History); strings.Count(past, "It is not known whether it was done") != 1 {
			t.Errorf("the model got %s", past)
		}
		pass(10 * time.Second) // the dead node's call has finished
		says(r.conn, next, "sorry")
		again := n.asksToPay(r.conn, next, "u2")
		resolve(r.conn, again, true)
		pass(10 * time.Second)
		n.once(t)
		names := map[any]bool{}
		for _, conn := range []*testClient{c, r.conn} {
			for _, m := range conn.texts {
				if m["type"] == "tool.started" {
					if names[m["call_id"]] {
						t.Errorf("the call %v began twice", m["call_id"])
					}
					names[m["call_id"]] = true
				}
			}
		}
	})
}

// TestCallBeforeItsCheckpoint (S3): a node dies during a call with a side effect that is in no checkpoint yet. If the
// model repeats the call on the next node, with arguments of any length, it does not run again.
func TestCallBeforeItsCheckpoint(t *testing.T) {
	for name, to := range map[string]string{"a short call": "Bob", "one whose arguments no checkpoint holds": strings.Repeat("Bob ", maxKeptArgs/4)} {
		t.Run(name, func(t *testing.T) {
			onTillNodes(t, func(t *testing.T, n tillNodes) {
				args := fmt.Sprintf(`{"to":%q,"amount":5}`, to)
				c, model := n.talk()
				n.takes = 5 * time.Second
				n.shelf.mu.Lock()
				n.shelf.late = true
				n.shelf.mu.Unlock()
				n.calls(model, "u1", "add", args)
				r := n.back(t, c)
				b := n.takeOver(t, r)
				next := b.fake.Accept(t)
				synctest.Wait()
				pass(10 * time.Second) // the dead node's call has finished
				n.calls(next, "u2", "add", args)
				pass(10 * time.Second)
				if paid := n.payments(); len(paid) != 1 {
					t.Errorf("%d payments", len(paid))
				}
			})
		})
	}
}

// TestNoTokenInACheckpoint: a checkpoint does not contain the tokens that answer questions, not even quoted.
func TestNoTokenInACheckpoint(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		token := n.asksToPay(c, model, "u1")
		c.say(`{"type":"input.text","text":"what is ` + token + `"}`)
		synctest.Wait()
		r := n.back(t, c)
		n.shelf.mu.Lock()
		defer n.shelf.mu.Unlock()
		if kept := string(n.shelf.kept[r.id]); !strings.Contains(kept, "what is ") || strings.Contains(kept, token) {
			t.Errorf("the checkpoint is %s", kept)
		}
	})
}

// TestTakeoverKeepsPolicyCounts: counts that the policy keeps for a session survive its node: a user who has declined
// often enough is not asked again.
func TestTakeoverKeepsPolicyCounts(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		token := n.asksToPay(c, model, "u1")
		resolve(c, token, false)
		says(c, model, "declined")
		r := n.back(t, c)
		b := n.takeOver(t, r)
		next := b.fake.Accept(t)
		synctest.Wait()
		_, m := n.shelf.checkpoint(t, r.id)
		if !strings.Contains(string(m.State.Calls.Book), `"over":true`) {
			t.Errorf("the counts are %s", m.State.Calls.Book)
		}
		next.Emit(transport.InputCommitted{Item: "u2"})
		synctest.Wait()
		_, m = n.shelf.checkpoint(t, r.id)
		if !strings.Contains(string(m.State.Calls.Book), `"over":true`) || m.State.Turn <= 100 {
			t.Errorf("after the next turn: %+v", m.State)
		}
	})
}

// TestCallLostBeforeFullNode (S3, S4): a full gateway takes over a dead one's session and gives it up again. The
// running call is still reported as lost once to the client and the audit.
func TestCallLostBeforeFullNode(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		n.takes = 5 * time.Second
		n.calls(model, "u1", "add", `{"to":"Bob","amount":5}`)
		r := n.back(t, c)
		r.read(-1)
		n.shelf.kill("a")
		full := n.shelf.stage(t, "full", remembering, func(o *Options) { o.Limits.Sessions = 1 })
		full.connect(startText)
		full.fake.Accept(t)
		r.st = full
		r.comeBack(r.position())
		if rec := n.shelf.record(r.id); r.conn.count("session.started") != 0 || rec.State != store.SessionMoving || rec.Epoch != 2 {
			t.Fatalf("the client got %q, and the record is %+v", r.conn.log(), rec)
		}
		pass(10 * time.Second) // the dead node's call has finished
		n.goOn(t, r)
		lost := 0
		for _, rec := range n.audited.list() {
			if rec.NotDelivered == "node_lost" && rec.ToolID == "add" {
				lost++
			}
		}
		if lost != 1 || r.conn.count("tool.ended") != 1 {
			t.Errorf("the audit has %d records of the lost call, and the client got %q", lost, r.conn.log())
		}
		if rec := n.shelf.record(r.id); rec.Lost {
			t.Error("the session is lost although a node continues it")
		}
	})
}

// TestResultWaitsForModel: a call ended without a connection to the model, and its gateway died before the next
// connection. The audit still gets its record.
func TestResultWaitsForModel(t *testing.T) {
	onTillNodes(t, func(t *testing.T, n tillNodes) {
		c, model := n.talk()
		n.takes = time.Second
		n.calls(model, "u1", "add", `{"to":"Bob","amount":5}`)
		defer n.fake.StallConnect()()
		model.FailRecv(&transport.Error{Op: "recv", Kind: transport.KindRetry, Err: errors.New("the connection broke")})
		pass(2 * time.Second)
		r := n.back(t, c)
		n.takeOver(t, r).fake.Accept(t)
		synctest.Wait()
		found := 0
		for _, rec := range n.audited.list() {
			if rec.ToolID == "add" && rec.OK && rec.Again && rec.NotDelivered == "not_sent" {
				found++
			}
		}
		if found != 1 {
			t.Errorf("the next gateway has written %d records of the call: %+v", found, n.audited.list())
		}
	})
}

// TestRecordInAuditQueue: a call was answered, but its record was still in the audit's queue when the gateway died. The
// next gateway writes it, unless it had left the queue before the last checkpoint.
func TestRecordInAuditQueue(t *testing.T) {
	for name, late := range map[string]bool{"in the queue": true, "written": false} {
		t.Run(name, func(t *testing.T) {
			onTillNodes(t, func(t *testing.T, n tillNodes) {
				c, model := n.talk()
				n.audited.hold(late)
				n.calls(model, "u1", "add", `{"to":"Bob","amount":5}`)
				if was := n.audited.list(); len(was) != 1 || !was[0].OK || !was[0].Delivered {
					t.Fatalf("the audit has %+v", was)
				}
				says(c, model, "done")
				r := n.back(t, c)
				n.takeOver(t, r).fake.Accept(t)
				synctest.Wait()
				n.once(t)
				lines := n.audited.list()
				if !late {
					if len(lines) != 1 {
						t.Errorf("the audit has %+v", lines)
					}
					return
				}
				if len(lines) != 2 || !lines[1].Again || !lines[1].OK || lines[1].CallID != lines[0].CallID || !lines[1].Time.Equal(lines[0].Time) {
					t.Errorf("the audit has %+v", lines)
				}
			})
		})
	}
}

// TestHandoffWaitsForTheAudit: a session that moves waits a second for the audit log. The next gateway writes exactly
// the records that are still in the queue then.
func TestHandoffWaitsForTheAudit(t *testing.T) {
	for name, written := range map[string]time.Duration{"slow": time.Minute, "fast": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			onTillNodes(t, func(t *testing.T, n tillNodes) {
				c, model := n.talk()
				n.audited.hold(true)
				n.calls(model, "u1", "add", `{"to":"Bob","amount":5}`)
				says(c, model, "done")
				r := n.back(t, c)
				time.AfterFunc(written, func() { n.audited.hold(false) })
				drained := n.drain(30 * time.Second)
				pass(2 * time.Second)
				n.goOn(t, r).fake.Accept(t)
				synctest.Wait()
				n.once(t)
				again := n.audited.list()[1:]
				if slow := written > time.Second; slow != (len(again) == 1) || slow && !again[0].Again {
					t.Errorf("the next gateway wrote %+v", again)
				}
				drained()
			})
		})
	}
}
