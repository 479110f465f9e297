package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/testutil"
	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// checking makes a session check the answers for the word damn.
func checking(t testing.TB, holdBack time.Duration, rules ...*checks.Rule) func(*Options) {
	t.Helper()
	rules = append(rules, &checks.Rule{Name: "rude", Outcome: checks.Replace, Say: "Let us stay polite.", Words: []string{"damn"}})
	set, err := checks.New(holdBack, testutil.Logger(nil), rules...)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Checks = set }
}

func (c *testClient) heard() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func wordsOf(item, text string, final bool) transport.Transcript {
	return transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: text, Final: final}
}

func everyModel(t *testing.T, test func(t *testing.T, caps transport.Capabilities)) {
	for name, caps := range map[string]transport.Capabilities{"hearing": hearing, "announcing": announcing} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, caps) })
		})
	}
}

// TestHeldBack: audio waits for its words and their check, at most for the hold-back. Nothing is lost or reordered.
func TestHeldBack(t *testing.T) {
	everyModel(t, func(t *testing.T, caps transport.Capabilities) {
		st := newStage(t, caps, checking(t, time.Second))
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 4800))
		pass(999 * time.Millisecond)
		if n := c.heard(); n != 0 {
			t.Errorf("%d bytes were heard before their words arrived", n)
		}
		pass(time.Millisecond)
		if n := c.heard(); n != 4800 {
			t.Errorf("%d bytes were heard after the hold-back, want 4800", n)
		}
		model.EmitAudio("a1", make([]byte, 4800))
		model.Emit(wordsOf("a1", "Hello there. ", false))
		if n := c.heard(); n != 9600 {
			t.Errorf("%d bytes were heard once their words had passed, want 9600", n)
		}
		model.EmitAudio("a1", make([]byte, 48000))
		if n := c.heard(); n != 9600 {
			t.Errorf("%d bytes were heard: more than the words account for", n)
		}
		model.Emit(transport.AudioDone{Item: "a1"}, wordsOf("a1", "Hello there. It is fine.", true),
			transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		if n := c.heard(); n != 57600 {
			t.Errorf("%d bytes were heard, want 57600", n)
		}
		pass(10 * time.Second)
		synctest.Wait()
		c.expect(t, "turn.started", "audio.start a1", "audio.end a1", "turn.ended")
		if got := c.last(t, "turn.ended"); got["status"] != "completed" {
			t.Errorf("the turn ended %v", got)
		}
	})
}

// TestCheckCutsOff: the rest of a refused answer is neither heard nor shown; the model learns how much was heard, and
// says the replacement.
func TestCheckCutsOff(t *testing.T) {
	everyModel(t, func(t *testing.T, caps transport.Capabilities) {
		var mu sync.Mutex
		var records []audit.Record
		change := checking(t, 2*time.Second)
		st := newStage(t, caps, func(o *Options) {
			change(o)
			o.Audit = func(r audit.Record) {
				mu.Lock()
				defer mu.Unlock()
				records = append(records, r)
			}
		})
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"}, wordsOf("a1", "Well, my dear ", false))
		model.EmitAudio("a1", make([]byte, 24000))
		if n := c.heard(); n != 24000 {
			t.Fatalf("%d bytes were heard, want 24000", n)
		}
		pass(300 * time.Millisecond)
		model.EmitAudio("a1", make([]byte, 24000))
		model.Emit(wordsOf("a1", "Well, my dear damn user", false))
		model.EmitAudio("a1", make([]byte, 24000))
		model.Emit(wordsOf("a1", "Well, my dear damn user!", true), transport.AudioDone{Item: "a1"})
		model.EmitAudio("a2", make([]byte, 4800))
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		if n := c.heard(); n != 24000 {
			t.Errorf("%d bytes were heard, want 24000", n)
		}
		c.expect(t, "audio.start a1", "answer.stopped a1 matched", "audio.flush a1 check", "turn.ended interrupted", "turn.started")
		last := c.last(t, "transcript")
		if last["text"] != "Well, my dear " || last["final"] != true || strings.Contains(strings.Join(c.log(), "\n"), "damn") {
			t.Errorf("the client got %v", last)
		}
		pass(time.Second)
		synctest.Wait()
		cuts := model.Commands()
		said := slices.ContainsFunc(cuts, func(cmd transport.Command) bool {
			text, ok := cmd.(transport.UserText)
			return ok && strings.Contains(text.Text, `exactly these words now, and nothing else: "Let us stay polite."`)
		})
		if !said || caps.Truncate && !slices.Contains(cuts, transport.Command(transport.Truncate{Item: "a1", AudioMS: 300})) {
			t.Errorf("the model got %+v", cuts)
		}
		model.Emit(transport.ResponseStarted{ID: "r2"}, wordsOf("b1", "Let us stay polite.", true))
		speaks(model, "b1", 48000)
		model.Emit(transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		pass(5 * time.Second)
		if n := c.heard(); n != 72000 {
			t.Errorf("%d bytes were heard, want 72000", n)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(records) != 1 || records[0].Event != audit.EventStopped || records[0].Check != "rude" || records[0].Why != "matched" {
			t.Errorf("audited: %+v", records)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, remembering, checking(t, 2*time.Second))
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"}, wordsOf("a1", "Well, my dear damn user", true))
		speaks(model, "a1", 48000)
		c.last(t, "answer.stopped")
		pass(time.Second)
		model.FailRecv(broken())
		st.fake.Accept(t)
		setups := st.fake.Setups()
		if past := setups[len(setups)-1].History; len(setups) < 2 || strings.Contains(fmt.Sprint(past), "damn") || !setups[0].Checked {
			t.Errorf("another connection got %+v", past)
		}
	})
}

// TestClaimIsHeldBack: a claim without a supporting call is neither heard nor shown, also while the call waits for
// approval. The model learns why, and each stop is audited. After the call the same words pass.
func TestClaimIsHeldBack(t *testing.T) {
	const claim, held, heard = "Sure. I've paid Bob five euros.", 4800, 48000
	english, err := calls.ParseClaimLanguages([]string{"en"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := checks.New(2*time.Second, testutil.Logger(nil), &checks.Rule{Name: "untrue", Outcome: checks.Cut, Claims: true})
	if err != nil {
		t.Fatal(err)
	}
	onStage(t, func(o *Options) { o.Checks, o.Policy.Claims = set, english }, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		answer, stops := 0, 0
		says := func(wantHeard int, stopped bool) {
			t.Helper()
			answer++
			item, before := fmt.Sprint("a", answer), c.heard()
			model.Emit(transport.ResponseStarted{ID: "r" + item}, wordsOf(item, "Sure. ", false))
			model.EmitAudio(item, make([]byte, held))
			pass(100 * time.Millisecond)
			model.EmitAudio(item, make([]byte, heard-held))
			model.Emit(wordsOf(item, claim, false), wordsOf(item, claim, true), transport.AudioDone{Item: item},
				transport.ResponseDone{ID: "r" + item, Status: transport.ResponseCompleted})
			pass(3 * time.Second)
			if n := c.heard() - before; n != wantHeard {
				t.Errorf("%d bytes of answer %d were heard, want %d", n, answer, wantHeard)
			}
			last, want := c.last(t, "transcript"), claim
			if stopped {
				want = "Sure. "
				stops++
				if got := c.last(t, "answer.stopped"); got["check"] != "untrue" || got["reason"] != "matched" || got["item_id"] != item {
					t.Errorf("the client got %v", got)
				}
			}
			if last["id"] != item || last["text"] != want {
				t.Errorf("the client got %v, want %q", last, want)
			}
			c.say(fmt.Sprintf(`{"type":"playback","item_id":%q,"played_ms":%d,"done":true}`, item, wantHeard/48))
			pass(time.Second)
			n := 0
			for _, text := range userTexts(model) {
				if strings.Contains(text, `You said "I've paid Bob five euros"`) {
					n++
				}
			}
			if n != stops {
				t.Errorf("the model got %d notices, want %d", n, stops)
			}
		}
		model.Emit(transport.InputCommitted{Item: "u1"})
		says(held, true)
		tl.calls(model, "u2", "pay", `{"to":"Bob","amount":5}`)
		says(held, true)
		token, _ := c.last(t, "confirmation.request")["token"].(string)
		resolve(c, token, true)
		says(heard, false)
		if len(tl.payments()) != 1 || strings.Contains(strings.Join(c.log(), "\n"), "claim.unmatched") {
			t.Errorf("%d payments; the client got %v", len(tl.payments()), c.log())
		}
		for _, r := range tl.audited.list() {
			switch r.Event {
			case audit.EventStopped:
				stops--
			case audit.EventClaim:
				t.Errorf("audited: %+v", r)
			}
		}
		if stops != 0 {
			t.Errorf("%d stops are not in the audit", stops)
		}
	})
}

// TestInterruptedWhileHeldBack: after an interruption the audio on hold is never heard, and the next answer is.
func TestInterruptedWhileHeldBack(t *testing.T) {
	everyModel(t, func(t *testing.T, caps transport.Capabilities) {
		st := newStage(t, caps, checking(t, time.Second))
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"}, wordsOf("a1", "Yes. ", false))
		model.EmitAudio("a1", make([]byte, 4800))
		model.EmitAudio("a1", make([]byte, 48000))
		if n := c.heard(); n != 4800 {
			t.Fatalf("%d bytes were heard, want 4800", n)
		}
		if caps.InterruptNotice {
			model.Emit(transport.Interrupted{})
		} else {
			model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 0})
		}
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseInterrupted})
		synctest.Wait()
		if !caps.InterruptNotice {
			model.Emit(transport.SpeechStopped{Item: "u2", AudioMS: 100}, transport.InputCommitted{Item: "u2"})
		}
		model.Emit(transport.ResponseStarted{ID: "r2"}, wordsOf("b1", "No.", true))
		speaks(model, "b1", 24000)
		model.Emit(transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		if n := c.heard(); n != 4800+24000 {
			t.Errorf("%d bytes were heard, want %d: the next answer must not wait", n, 4800+24000)
		}
		pass(10 * time.Second)
		c.expect(t, "audio.start a1", "audio.flush a1", "turn.ended interrupted", "audio.start b1", "audio.end b1", "turn.ended completed")
	})
}

// hanging is a Remote that never answers.
type hanging struct{}

func (hanging) Check(ctx context.Context, _ checks.Text) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// TestHangingCheck: a check that does not answer delays an answer by the hold-back. Then the answer passes or is
// blocked, the user gets a reply, and no goroutine remains.
func TestHangingCheck(t *testing.T) {
	for _, block := range []bool{false, true} {
		everyModel(t, func(t *testing.T, caps transport.Capabilities) {
			slow := &checks.Rule{Name: "slow", Outcome: checks.Cut, Remote: hanging{}, Block: block, Timeout: time.Minute}
			st := newStage(t, caps, checking(t, time.Second, slow))
			c, model := st.started()
			model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"}, wordsOf("a1", "Yes.", true))
			speaks(model, "a1", 48000)
			model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
			pass(999 * time.Millisecond)
			if n := c.heard(); n != 0 {
				t.Errorf("%d bytes were heard before the hold-back ended", n)
			}
			pass(time.Millisecond)
			if want := map[bool]int{false: 48000, true: 0}[block]; c.heard() != want {
				t.Errorf("block %t: %d bytes were heard, want %d", block, c.heard(), want)
			}
			if !block {
				return
			}
			stopped := c.last(t, "answer.stopped")
			if stopped["check"] != "slow" || stopped["reason"] != "late" || stopped["outcome"] != "cut" {
				t.Errorf("the client got %v", stopped)
			}
			if text, ok := model.Commands()[0].(transport.UserText); !ok || !strings.Contains(text.Text, "in another way") {
				t.Errorf("the model got %+v", model.Commands())
			}
		})
	}
}

// TestLinkLostWhileHeldBack: audio on hold is not heard after the connection to the model is lost.
func TestLinkLostWhileHeldBack(t *testing.T) {
	everyModel(t, func(t *testing.T, caps transport.Capabilities) {
		st := newStage(t, caps, checking(t, time.Second))
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 4800))
		synctest.Wait()
		model.FailRecv(&transport.Error{Kind: transport.KindRetry})
		pass(5 * time.Second)
		if n := c.heard(); n != 0 {
			t.Errorf("%d bytes of a lost connection were heard unchecked", n)
		}
	})
}

// TestNoHoldBackAllocatesNothing: checks without a hold-back do not change the audio path.
func TestNoHoldBackAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	s := quietSession(t, 16000, 24000)
	checking(t, 0)(s.opts)
	if err := s.model.link().begin(s, 1, s.model.link().conn); err != nil {
		t.Fatal(err)
	}
	ev := &transport.AudioOut{Item: "a1", PCM: make([]byte, 9600)}
	for range 10 {
		walkDown(s, ev)
	}
	if s.model.link().gate == nil {
		t.Fatal("nothing is checked")
	}
	if n := testing.AllocsPerRun(500, func() { walkDown(s, ev) }); n != 0 {
		t.Errorf("%v allocations a frame down", n)
	}
}
