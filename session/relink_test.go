package session

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// remembering is hearing with history, and waiting also resumes.
var (
	remembering = with(hearing, func(c *transport.Capabilities) { c.History = transport.HistoryItems })
	resuming    = with(remembering, func(c *transport.Capabilities) { c.Resume, c.RespondNeeded = true, false })
)

func with(c transport.Capabilities, change func(*transport.Capabilities)) transport.Capabilities {
	change(&c)
	return c
}

// broken is the error of a broken connection.
func broken() *transport.Error { return scriptedError("recv", transport.KindRetry) }

// answers makes the model speak one answer of 100 ms, and the client hear it.
func answers(c *testClient, model *fakeConn, response, item, text string) {
	model.Emit(transport.ResponseStarted{ID: response}, transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: text, Final: true})
	model.EmitAudio(item, make([]byte, 4800))
	model.Emit(transport.AudioDone{Item: item}, transport.ResponseDone{ID: response, Status: transport.ResponseCompleted})
	synctest.Wait()
	pass(3 * time.Second)
}

// TestLossIsReplayed: a connection that breaks between turns is replaced without a message to the client. The next one
// gets the conversation, and its ids differ from those of the first.
func TestLossIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.")
		model.FailRecv(broken())
		next := st.fake.Accept(t)
		synctest.Wait()
		model.WaitClosed(t)
		setups := st.fake.Setups()
		want := []transport.Past{transport.PastUser{Text: "where is Ada"}, transport.PastAssistant{Text: "In Vienna."}}
		if got := setups[len(setups)-1]; !slices.Equal(got.History, want) || got.Reanchor == "" || got.Instructions != setups[0].Instructions {
			t.Errorf("the next connection got %+v", got)
		}
		c.say(`{"type":"input.text","text":"and Bob"}`)
		synctest.Wait()
		answers(c, next, "r1", "a1", "In Rome.")
		if c.count("provider.") != 0 || c.count("error") != 0 {
			t.Errorf("the client got: %q", c.log())
		}
		c.expect(t, "audio.start a1", "turn.ended completed", "audio.start l2.a1", "turn.ended completed")
	})
}

// bag is the state that a connection leaves to the next.
type bag struct{ dropped atomic.Int64 }

func (b *bag) Drop() { b.dropped.Add(1) }

// TestCarriedOver: each attempt at a next connection gets the state of the last one, which is then dropped.
func TestCarriedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		left := &bag{}
		model.leaves.Store(left)
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.")
		model.FailRecv(broken())
		st.fake.Accept(t)
		synctest.Wait()
		model.WaitClosed(t)
		setups := st.fake.Setups()
		if got := setups[len(setups)-1].Carried; got != transport.Carried(left) || setups[0].Carried != nil || left.dropped.Load() != 1 {
			t.Errorf("the next connection was offered %v, and it was dropped %d times", got, left.dropped.Load())
		}
	})
}

// TestLossWhileAnswerIsPending: the client is informed immediately, and the model gets the request again on its new
// connection.
func TestLossWhileAnswerIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		release := st.fake.StallConnect()
		model.FailRecv(broken())
		synctest.Wait()
		if c.count("provider.reconnecting") != 1 {
			t.Fatalf("the client got no message: %q", c.log())
		}
		pass(time.Second)
		release()
		next := st.fake.Accept(t)
		if got := next.NextControl(t); got != (transport.Respond{}) {
			t.Errorf("the model got %#v", got)
		}
		synctest.Wait()
		m := c.last(t, "provider.reconnected")
		if m["how"] != "replayed" || m["reason"] != "lost" || m["lost_ms"] != 1000.0 {
			t.Errorf("the client got %v", m)
		}
		answers(c, next, "r1", "a1", "In Vienna.")
		c.expect(t, "turn.started", "provider.reconnecting", "provider.reconnected", "audio.start l2.a1", "turn.ended completed")
	})
}

// TestRotationIsUnheard: a planned replacement waits until the answer was heard, closes the old connection first, sends
// no message, and all speech of the meantime reaches the new connection.
func TestRotationIsUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.GoAway{TimeLeft: 50 * time.Second}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 48000))
		synctest.Wait()
		if n := st.fake.Attempts(); n != 1 {
			t.Fatalf("there were %d connections while the model spoke", n)
		}
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		release := st.fake.StallConnect()
		model.WaitClosed(t)
		synctest.Wait()
		if n := st.fake.Attempts(); n != 2 || st.fake.Open() != 0 {
			t.Fatalf("%d connections were requested, %d are open", n, st.fake.Open())
		}
		speech := testutil.Tone(16000, 440, -12, 400*time.Millisecond)
		for pcm := range slices.Chunk(speech, 640) {
			c.speak(pcm)
		}
		synctest.Wait()
		release()
		next := st.fake.Accept(t)
		synctest.Wait()
		if got := next.Audio(); !bytes.Equal(got, speech) {
			t.Errorf("the new connection heard %d of %d bytes", len(got), len(speech))
		}
		next.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10}, transport.SpeechStopped{Item: "u1", AudioMS: 400, EndMS: 300}, transport.InputCommitted{Item: "u1"})
		answers(c, next, "r1", "a1", "Yes.")
		if c.count("provider.") != 0 || c.count("error") != 0 || c.count("turn.ended completed") != 2 {
			t.Errorf("the client got: %q", c.log())
		}
	})
}

// TestForcedRotation: if a provider leaves in mid-answer, the received part is played and ended, and the model is asked
// to continue.
func TestForcedRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		c.say(`{"type":"input.text","text":"tell me a story"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 24000))
		model.Emit(transport.GoAway{})
		next := st.fake.Accept(t)
		synctest.Wait()
		c.expect(t, "audio.start a1", "audio.end a1")
		if c.count("provider.") != 0 {
			t.Errorf("the client got a message: %q", c.log())
		}
		if ms := c.last(t, "audio.end")["audio_ms"]; ms != 500.0 || c.bytes != 24000 {
			t.Errorf("the client got %d bytes, and the item ended at %v ms", c.bytes, ms)
		}
		if got, ok := next.NextControl(t).(transport.UserText); !ok || !strings.Contains(got.Text, "broke off") {
			t.Errorf("the model got %+v", got)
		}
	})
}

// TestPositionsMoveWithTheLink: a model counts the user's audio from the start of its connection, a client from the
// start of the session.
func TestPositionsMoveWithTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		for range 30 {
			c.speak(make([]byte, 640))
		}
		synctest.Wait()
		model.FailRecv(broken())
		next := st.fake.Accept(t)
		synctest.Wait()
		c.speak(make([]byte, 640))
		synctest.Wait()
		next.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 15})
		synctest.Wait()
		if ms := c.last(t, "speech.started")["audio_ms"]; ms != 615.0 {
			t.Errorf("the speech began at %v ms, want 615", ms)
		}
	})
}

// TestRotationBeforeTheEnd: a connection is replaced before the provider's expiry time, and before the longest life in
// the capabilities, which the provider does not announce.
func TestRotationBeforeTheEnd(t *testing.T) {
	for name, prepare := range map[string]func(*transport.Capabilities, *transport.Info){
		"the provider's time": func(_ *transport.Capabilities, i *transport.Info) { i.ExpiresAt = time.Now().Add(time.Hour) },
		"the longest life":    func(c *transport.Capabilities, _ *transport.Info) { c.ConnectionLife = 58 * time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caps, info := remembering, transport.Info{}
				prepare(&caps, &info)
				st := newStage(t, caps, func(o *Options) { o.Policy.MaxLength = 0 })
				st.fake.Info = info
				_, model := st.started()
				pass(45 * time.Minute)
				synctest.Wait()
				if n := st.fake.Attempts(); n != 1 {
					t.Fatalf("there were %d connections after 45 minutes", n)
				}
				pass(7 * time.Minute)
				model.WaitClosed(t)
				st.fake.Accept(t)
				synctest.Wait()
				if n := st.fake.Attempts(); n != 2 {
					t.Errorf("there were %d connections after 52 minutes", n)
				}
			})
		})
	}
}

// TestLastMomentOfALink: while the model works, a connection is kept until the last moment: 5 s before the provider's
// expiry time, a minute before the longest life in the capabilities.
func TestLastMomentOfALink(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*transport.Capabilities, *transport.Info)
		spare   time.Duration
	}{
		"the provider's time": {func(_ *transport.Capabilities, i *transport.Info) { i.ExpiresAt = time.Now().Add(time.Hour) }, 5 * time.Second},
		"the longest life":    {func(c *transport.Capabilities, _ *transport.Info) { c.ConnectionLife = time.Hour }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caps, info := remembering, transport.Info{}
				tc.prepare(&caps, &info)
				st := newStage(t, caps, func(o *Options) { o.Policy.MaxLength = 0 })
				st.fake.Info = info
				_, model := st.started()
				pass(40 * time.Minute)
				model.Emit(transport.ResponseStarted{ID: "r1"}) // never ends
				pass(20*time.Minute - tc.spare - time.Second)
				synctest.Wait()
				if n := st.fake.Attempts(); n != 1 {
					t.Fatalf("there were %d connections before the last moment", n)
				}
				pass(time.Second)
				st.fake.Accept(t)
				synctest.Wait()
				if n := st.fake.Attempts(); n != 2 {
					t.Errorf("there were %d connections at the last moment", n)
				}
			})
		})
	}
}

// TestHandleIsSpentOnce: a fresh handle resumes the conversation; a provider that refuses it gets the history.
func TestHandleIsSpentOnce(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, resuming, nil)
			c, model := st.started()
			c.say(`{"type":"input.text","text":"where is Ada"}`)
			synctest.Wait()
			model.Emit(transport.ResumeHandle{Handle: "older", Resumable: true})
			answers(c, model, "r1", "a1", "In Vienna.")
			model.Emit(transport.ResumeHandle{Handle: "newer", Resumable: true})
			synctest.Wait()
			if refused {
				st.fake.Refuse(1, scriptedError("setup", transport.KindInvalid))
			}
			model.Emit(transport.GoAway{TimeLeft: time.Minute})
			st.fake.Accept(t)
			synctest.Wait()
			setups := st.fake.Setups()
			if got := setups[1]; got.ResumeHandle != "newer" || got.History != nil {
				t.Errorf("first the conversation was resumed with %q, history %v", got.ResumeHandle, got.History)
			}
			last := setups[len(setups)-1]
			if refused != (len(last.History) == 2) || refused != (last.ResumeHandle == "") {
				t.Errorf("refused %v: at last the setup had the handle %q and the history %v", refused, last.ResumeHandle, last.History)
			}
		})
	}
}

// TestHistoryIsRefused: a provider that refuses the history is used without it.
func TestHistoryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		st.fake.Refuse(1, scriptedError(transport.OpHistory, transport.KindInvalid))
		model.FailRecv(broken())
		st.fake.Accept(t)
		synctest.Wait()
		if m := c.last(t, "provider.reconnected"); m["how"] != "fresh" {
			t.Errorf("the client got %v", m)
		}
	})
}

// TestResultAfterLoss: a tool runs once despite a loss, and the next connection gets its result as text; a connection
// gets no results of calls that it did not make.
func TestResultAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worker := &crew{release: make(chan struct{})}
		st, _ := withToolsOf(t, remembering, entry("dig", "1.0.0"), worker.run, false)
		_, model := st.started()
		asked(model, "dig", "c1")
		synctest.Wait()
		model.FailRecv(broken())
		next := st.fake.Accept(t)
		synctest.Wait()
		close(worker.release)
		synctest.Wait()
		for _, cmd := range slices.Concat(model.Commands(), next.Commands()) {
			if _, ok := cmd.(transport.ToolResult); ok {
				t.Errorf("a call was answered: %+v", cmd)
			}
		}
		if got, ok := next.NextControl(t).(transport.UserText); !ok || !strings.Contains(got.Text, "You called dig before") {
			t.Errorf("the model got %+v", got)
		}
		if _, most, _ := worker.counts(); most != 1 {
			t.Errorf("the tool ran %d times at once", most)
		}
	})
}

// TestRotationWaitsForTheTool: the provider announces its end while the model waits for a tool. The connection is
// replaced only after the answer was heard.
func TestRotationWaitsForTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worker := &crew{release: make(chan struct{})}
		st, _ := withToolsOf(t, remembering, entry("dig", "1.0.0"), worker.run, false)
		c, model := st.started()
		asked(model, "dig", "c1")
		model.Emit(transport.GoAway{TimeLeft: time.Minute})
		synctest.Wait()
		pass(4 * time.Second)
		if n := st.fake.Attempts(); n != 1 {
			t.Fatalf("there were %d connections while the tool ran", n)
		}
		close(worker.release)
		synctest.Wait()
		if env := results(t, model)["c1"]; !env.OK {
			t.Fatalf("the call was answered with %+v", env)
		}
		answers(c, model, "r2", "a1", "Done.")
		st.fake.Accept(t)
		if c.count("provider.") != 0 || c.count("error") != 0 {
			t.Errorf("the client got: %q", c.log())
		}
	})
}

// TestProviderStaysUnreachable: an unreachable provider ends the session with a typed error, half a minute after the
// loss.
func TestProviderStaysUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		synctest.Wait()
		st.fake.Refuse(1000, scriptedError("dial", transport.KindRetry))
		model.FailRecv(broken())
		lost := time.Now()
		for !c.isOver() && time.Since(lost) < time.Minute {
			pass(100 * time.Millisecond)
			synctest.Wait()
		}
		if took := time.Since(lost); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := st.fake.Attempts(); n > 16 {
			t.Errorf("%d attempts", n)
		}
		c.expect(t, "provider.reconnecting", "error provider_lost", "session.ended provider_lost")
	})
}

// TestFinalRefusal: after a permanent refusal a provider is not tried again.
func TestFinalRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		synctest.Wait()
		st.fake.Refuse(1000, scriptedError("dial", transport.KindAuth))
		model.FailRecv(broken())
		pass(time.Second)
		synctest.Wait()
		if n := st.fake.Attempts(); n != 2 || !c.isOver() {
			t.Errorf("%d attempts, over: %v", n, c.isOver())
		}
	})
}

// TestEndDuringReconnect: a session that ends while it reconnects leaves nothing.
func TestEndDuringReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, nil)
		c, model := st.started()
		synctest.Wait()
		release := st.fake.StallConnect()
		model.FailRecv(broken())
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		if !c.isOver() || st.fake.Open() != 0 {
			t.Errorf("over: %v, %d connections are open", c.isOver(), st.fake.Open())
		}
		release()
	})
}
