package session

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// TestToolProgress: a tool that exceeds its latency budget is reported then and every five seconds, with its running
// time, and never after its end.
func TestToolProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := withTools(t, entry("slow", "1.0.0"), func(context.Context) (registry.Result, error) {
			<-time.After(12 * time.Second)
			return registry.Result{}, nil
		}, false)
		c, model := st.started()
		synctest.Wait()
		asked(model, "slow", "c1")
		for _, want := range []struct {
			after time.Duration
			ms    float64
		}{{time.Second, 1000}, {5 * time.Second, 6000}, {5 * time.Second, 11000}} {
			n := c.count("tool.progress")
			pass(want.after - time.Millisecond)
			synctest.Wait()
			if c.count("tool.progress") != n {
				t.Errorf("it was reported before %v ms", want.ms)
			}
			pass(time.Millisecond)
			synctest.Wait()
			got := c.last(t, "tool.progress")
			if c.count("tool.progress") != n+1 || got["duration_ms"] != want.ms || got["call_id"] != "call_1" || got["tool"] != "slow" || got["category"] != "utility" || got["turn"] != 1.0 {
				t.Errorf("after %v ms the client got %v", want.ms, got)
			}
		}
		pass(time.Minute)
		synctest.Wait()
		if c.count("tool.progress") != 3 || c.last(t, "tool.ended")["duration_ms"] != 12000.0 {
			t.Errorf("%d reports, and the end %v", c.count("tool.progress"), c.last(t, "tool.ended"))
		}
	})
}

// TestClampedAndRepeated: a lowered argument and a repeated call are reported to the client, and audited.
func TestClampedAndRepeated(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		call := transport.ToolCall{Call: "m1", ID: "call_provider_1", Name: "search", Args: json.RawMessage(`{"top_k":10}`)}
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"}, call)
		synctest.Wait()
		got := c.last(t, "tool.ended")
		if _, marked := got["deduplicated"]; marked || got["ok"] != true || fmt.Sprint(got["clamped"]) != "map[top_k:map[applied:3 requested:10]]" || got["category"] != "retrieval" {
			t.Errorf("the client got %v", got)
		}
		call.Call = "m2"
		model.Emit(call, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		again := c.last(t, "tool.ended")
		if again["deduplicated"] != true || again["call_id"] == got["call_id"] || again["ok"] != true || c.count("tool.started") != 2 || c.count("tool.ended") != 2 {
			t.Errorf("the client got %v", again)
		}
		if env := results(t, model)["m2"]; !env.OK || string(env.Data) != "3" || !env.Meta.CacheHit || env.Meta.OriginalTurn != 1 {
			t.Errorf("the model got %+v", env)
		}
		calls := tl.audited.byCall(t)
		if first, second := calls["call_1"], calls["call_2"]; len(calls) != 2 || first.Clamped["top_k"].Applied != 3 || first.CacheHit || !second.CacheHit || first.ProviderCallID != "call_provider_1" {
			t.Errorf("audited: %+v", calls)
		}
	})
}

// TestEveryCallIsAuditedOnce: each call is audited once with its user, whatever its result.
func TestEveryCallIsAuditedOnce(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		for i, call := range []struct{ tool, args string }{
			{"nobody", `{}`}, {"search", `{"top_k":"many"}`}, {"search", `{"top_k":1}`}, {"search", `{"top_k":2}`}, {"pay", `{"amount":1}`},
		} {
			model.Emit(transport.ToolCall{Call: fmt.Sprint("m", i), ID: fmt.Sprint("call_number_", i), Name: call.tool, Args: json.RawMessage(call.args)})
		}
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		calls := tl.audited.byCall(t)
		for i, want := range []registry.ErrorType{registry.ErrorNotFound, registry.ErrorValidation, "", registry.ErrorBudgetExceeded, registry.ErrorBudgetExceeded} {
			r, has := calls[fmt.Sprintf("call_%d", i+1)]
			if !has || r.ErrorType != want || r.OK != (want == "") || !r.Delivered || len(r.Budget) == 0 {
				t.Errorf("call %d is audited as %+v, want %q", i+1, r, want)
			}
			if r.SessionID != c.last(t, "session.started")["session_id"] || r.UserID != "ada" || r.Agent != "default" || r.ConversationID != "conv_1" || r.Mode != spec.ModeVoice || r.RegistryVersion == "" {
				t.Errorf("call %d is audited without its user: %+v", i+1, r)
			}
		}
		if len(calls) != 5 || c.count("tool.started") != 5 || c.count("tool.ended") != 5 || len(results(t, model)) != 5 {
			t.Errorf("%d are audited, %d begun, %d ended, %d answered", len(calls), c.count("tool.started"), c.count("tool.ended"), len(results(t, model)))
		}
	})
}

func TestUserWithoutNameIsAuditedByAddress(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		_, model := tl.started()
		synctest.Wait()
		tl.calls(model, "u1", "search", `{}`)
		if r := tl.audited.byCall(t)["call_1"]; r.UserID != someone.String() {
			t.Errorf("audited: %+v", r)
		}
	})
}

// TestToolFinishesAfterItsClient: the side effect is recorded in the ledger although the client has disconnected.
func TestToolFinishesAfterItsClient(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		tl.takes = 30 * time.Second
		c, model := tl.talk()
		resolve(c, tl.asksToPay(c, model, "u1"), true)
		c.Abort()
		pass(20 * time.Second)
		if n := tl.m.Running(); n != 1 {
			t.Errorf("%d sessions run while a tool of one does", n)
		}
		pass(11 * time.Second)
		synctest.Wait()
		tl.once(t)
		if r := tl.audited.byCall(t)["call_2"]; !r.OK || r.Delivered || r.NotDelivered != "session_over" || r.DurationMS != 30_000 {
			t.Errorf("audited: %+v", r)
		}
		if e := tl.ledger.Entries(); len(e) != 1 || e[0].State != "done" {
			t.Errorf("the ledger says %+v", e)
		}
		if tl.m.Running() != 0 {
			t.Error("the session continues")
		}
	})
}

// TestFarewellIsHeard: once a tool ends the session the user is no longer heard, their speech flushes nothing, and the
// session ends after the last word.
func TestFarewellIsHeard(t *testing.T) {
	for tool, close := range map[string]int{"bye": int(protocol.CloseDone), "ban": int(protocol.CloseBlocked)} {
		t.Run(tool, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				c, model := tl.talk()
				speech := testutil.Tone(16000, 440, -12, 20*time.Millisecond)
				c.speak(speech)
				synctest.Wait()
				heard := len(model.Audio())
				banned := time.Now()
				tl.calls(model, "u1", tool, `{}`)
				c.expect(t, "session.ending tool_ended")
				model.Emit(transport.ResponseStarted{ID: "r2"})
				model.EmitAudio("farewell", make([]byte, 48000))
				synctest.Wait()
				c.speak(speech)
				c.say(`{"type":"input.text","text":"wait"}`)
				model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 30}, transport.Interrupted{})
				synctest.Wait()
				model.EmitAudio("farewell", make([]byte, 48000))
				model.Emit(transport.AudioDone{Item: "farewell"}, transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
				synctest.Wait()
				if got := len(model.Audio()); heard != len(speech) || got != heard {
					t.Errorf("the model heard %d bytes before, and then %d", heard, got)
				}
				if c.count("audio.flush") != 0 || c.bytes != 96000 || c.isOver() {
					t.Errorf("%d flushes, %d bytes of the farewell, over=%t", c.count("audio.flush"), c.bytes, c.isOver())
				}
				c.expect(t, "error session_ending")
				if said := userTexts(model); len(said) != 0 {
					t.Errorf("the model got %q", said)
				}
				c.say(`{"type":"playback","item_id":"farewell","played_ms":2000,"done":true}`)
				synctest.Wait()
				if int(c.code) != close || !c.isOver() {
					t.Fatalf("closed=%t with %d, want %d", c.isOver(), c.code, close)
				}
				if tool == "bye" {
					c.expect(t, "audio.end farewell", "session.ended tool_ended")
					return
				}
				until := banned.Add(time.Hour).UTC()
				c.expect(t, "timeout", "session.ending", "audio.end farewell", "error blocked", "session.ended blocked")
				if got := c.last(t, "error"); got["until"] != until.Format("2006-01-02T15:04:05.000Z") || got["retryable"] != false {
					t.Errorf("the client got %v", got)
				}
				if got := c.last(t, "timeout"); got["timeoutUntil"] != float64(until.UnixMilli()) || got["durationSeconds"] != 3600.0 || got["message"] != "Enough." {
					t.Errorf("the client got %v", got)
				}
			})
		})
	}
}

// TestFarewellThatIsNeverHeard: after twelve seconds the session ends anyway, for a blocked user with the code of the
// block.
func TestFarewellThatIsNeverHeard(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.calls(model, "u1", "ban", `{}`)
		pass(12*time.Second - time.Millisecond)
		synctest.Wait()
		if c.isOver() {
			t.Fatal("the session ended too early")
		}
		pass(time.Millisecond)
		synctest.Wait()
		c.expect(t, "error blocked", "session.ended blocked")
		c.ended(t, protocol.CloseBlocked)
	})
}

// TestBlockedUserHangsUp: the session then ended because of the client.
func TestBlockedUserHangsUp(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.calls(model, "u1", "ban", `{}`)
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		c.expect(t, "timeout", "session.ended client_ended")
		c.ended(t, protocol.CloseDone)
	})
}

// TestNothingIsLeftOfTools (invariant 10): sessions end while their tools run, wait, or need an approval; synctest
// fails if a goroutine remains.
func TestNothingIsLeftOfTools(t *testing.T) {
	onStage(t, func(o *Options) { o.Limits.NewPerSecond = 100 }, func(t *testing.T, tl *till) {
		tl.takes = time.Second
		for i := range 30 {
			c, model := tl.talk()
			token := tl.asksToPay(c, model, "u1")
			if i%2 == 0 {
				resolve(c, token, i%4 == 0)
			}
			tl.calls(model, "u2", []string{"pay", "search", "bye"}[i%3], `{}`)
			switch i % 5 {
			case 0:
				c.say(`{"type":"session.end"}`)
			case 1:
				c.Abort()
			case 2:
				model.FailRecv(&transport.Error{Kind: transport.KindRetry})
			case 3:
				c.stallWrites()
			}
		}
		tl.m.Close()
		if tl.m.Running() != 0 || tl.fake.Open() != 0 {
			t.Errorf("%d sessions and %d connections remain", tl.m.Running(), tl.fake.Open())
		}
		tl.m.roster.mu.Lock()
		defer tl.m.roster.mu.Unlock()
		if len(tl.m.roster.sessions) != 0 {
			t.Errorf("the Manager still knows %d sessions", len(tl.m.roster.sessions))
		}
	})
}
