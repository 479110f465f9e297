package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/prompts"
	"voicegw/store"
	"voicegw/transport"
)

// replaying is a model like Gemini's: it does not report speech, answers unasked, and accepts a history.
var replaying = with(announcing, func(c *transport.Capabilities) { c.History = transport.HistoryItems })

// long is an answer of four seconds, in frames of a tenth of one.
const long = "It is late in the evening now, so please come back tomorrow morning."

func saysLong(model *fakeConn, item string) {
	model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: long, Final: true})
	for i := range 40 {
		model.EmitAudio(item, speech(second/10, byte(i)))
	}
	model.Emit(transport.AudioDone{Item: item}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
	synctest.Wait()
}

// readTo reads until the client has that much audio of an item, in ms.
func (r *returning) readTo(item string, ms int) {
	r.t.Helper()
	for len(r.audio[item]) < ms*48 {
		before := r.taken
		if r.read(1); r.taken == before {
			r.t.Fatalf("only %d bytes of %s have arrived", len(r.audio[item]), item)
		}
	}
}

// allTexts returns the texts and requests that a connection got.
func allTexts(model *fakeConn) (received []string) {
	for _, cmd := range model.Commands() {
		switch cmd := cmd.(type) {
		case transport.UserText:
			received = append(received, cmd.Text)
		case transport.Respond:
			received = append(received, "respond")
		}
	}
	return received
}

// TestUnheardAnswer: a node dies during playback of a complete answer, after the turn's end by the clock, or while the
// client is disconnected. The next model says only the part that the client has not received.
func TestUnheardAnswer(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"asked": remembering, "by itself": replaying} {
		for _, has := range []int{0, 2000, 4000} {
			for _, when := range []string{"sounding", "over", "away"} {
				t.Run(fmt.Sprintf("%s, %d ms, %s", name, has, when), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { unheardAnswer(t, caps, has, when) })
				})
			}
		}
	}
}

func unheardAnswer(t *testing.T, caps transport.Capabilities, has int, when string) {
	f := newShelf()
	r, model := beginsAt(t, f.stage(t, "a", caps, nil))
	r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
	synctest.Wait()
	r.read(-1)
	if when == "away" && has == 0 {
		r.lose()
	}
	saysLong(model, "a1")
	if has > 0 {
		r.readTo("a1", has)
	}
	if when == "away" && has > 0 {
		r.lose()
	}
	if when == "over" {
		pass(20 * time.Second)
	}
	f.kill("a")

	r.st = f.stage(t, "b", caps, nil)
	r.comeBack(r.position())
	next := r.st.fake.Accept(t)
	synctest.Wait()
	setups := r.st.fake.Setups()
	past, received := setups[len(setups)-1].History, strings.Join(allTexts(next), " ")
	asked := transport.PastUser{Text: "where is Ada"}
	switch {
	case has == 0:
		want := map[bool]string{true: "respond", false: "where is Ada"}[caps.RespondNeeded]
		if !slices.Equal(past, []transport.Past{asked}) || received != want {
			t.Errorf("the model got %+v, and then %q", past, received)
		}
	case has < 4000:
		want := []transport.Past{asked, transport.PastAssistant{Text: "It is late in the evening now, so", Interrupted: true}}
		if !slices.Equal(past, want) || !strings.HasSuffix(received, prompts.GoOnAfterBreak) {
			t.Errorf("the model got %+v, and then %q", past, received)
		}
	default:
		if want := []transport.Past{asked, transport.PastAssistant{Text: long}}; !slices.Equal(past, want) || received != "" {
			t.Errorf("the model got %+v, and then %q", past, received)
		}
		return
	}
	answers(r.conn, next, "r1", "b1", "In Vienna.")
	r.read(-1)
	if m := r.conn.last(t, "turn.ended"); m["turn"] != 1.0 || m["status"] != "completed" || r.conn.count("error") != 0 {
		t.Errorf("the client got %q", r.conn.log())
	}
	if kept, m := f.checkpoint(t, r.id); m.State.Open != nil || m.State.Answered == nil || len(kept.History) != 2+min(has, 1) {
		t.Errorf("the checkpoint is %+v, %+v", kept.History, m.State)
	}
}

// TestUnheardAnswerTwice: the second node dies before its model has continued, and then after that. The third node
// requests the missing rest, and the fourth nothing.
func TestUnheardAnswerTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", replaying, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		saysLong(model, "a1")
		r.readTo("a1", 2000)
		f.kill("a")
		for _, node := range []string{"b", "c"} {
			r.st = f.stage(t, node, replaying, nil)
			r.comeBack(r.position())
			model = r.st.fake.Accept(t)
			synctest.Wait()
			if received := allTexts(model); len(received) != 1 || !strings.HasSuffix(received[0], prompts.GoOnAfterBreak) {
				t.Errorf("the model of %s got %q", node, received)
			}
			r.read(-1)
			if node == "b" {
				f.kill(node)
			}
		}
		answers(r.conn, model, "r1", "c1", "Please come back tomorrow.")
		r.read(-1)
		f.kill("c")
		r.st = f.stage(t, "d", replaying, nil)
		r.comeBack(r.position())
		model = r.st.fake.Accept(t)
		synctest.Wait()
		setups := r.st.fake.Setups()
		want := []transport.Past{
			transport.PastUser{Text: "where is Ada"}, transport.PastAssistant{Text: "It is late in the evening now, so", Interrupted: true},
			transport.PastAssistant{Text: "Please come back tomorrow."},
		}
		if got := setups[len(setups)-1].History; !slices.Equal(got, want) || len(allTexts(model)) != 0 {
			t.Errorf("the model got %+v, and then %q", got, allTexts(model))
		}
	})
}

// TestHandleWithUnheardAnswer: the provider could resume the conversation, but assumes that the user has heard the
// answer. The client has not, so the next model gets the history instead.
func TestHandleWithUnheardAnswer(t *testing.T) {
	for _, has := range []int{0, 4000} {
		t.Run(fmt.Sprintf("%d ms", has), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r, model := beginsAt(t, f.stage(t, "a", resuming, nil))
				r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
				synctest.Wait()
				r.read(-1)
				saysLong(model, "a1")
				model.Emit(transport.ResumeHandle{Handle: "h1", Resumable: true})
				synctest.Wait()
				r.readTo("a1", has)
				f.kill("a")
				r.st = f.stage(t, "b", resuming, nil)
				r.comeBack(r.position())
				r.st.fake.Accept(t)
				setups := r.st.fake.Setups()
				if got := setups[len(setups)-1]; (got.ResumeHandle == "h1") != (has > 0) || (len(got.History) == 1) != (has == 0) {
					t.Errorf("the conversation continues with %+v", got)
				}
			})
		})
	}
}

// TestReloadBeforeTakeover: the page is reloaded in mid-answer and has no audio, and then its node dies, during the
// answer or long after it: nothing is said a second time.
func TestReloadBeforeTakeover(t *testing.T) {
	for _, later := range []time.Duration{0, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newShelf()
			r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
			r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
			synctest.Wait()
			saysLong(model, "a1")
			r.read(-1)
			pass(later)
			r.read(-1)
			f.kill("a")
			r.reload()
			r.st = f.stage(t, "b", remembering, nil)
			r.comeBack(r.position())
			next := r.st.fake.Accept(t)
			synctest.Wait()
			if received := allTexts(next); len(received) != 0 || r.conn.count("error") != 0 {
				t.Errorf("after %v the model got %q, and the client %q", later, received, r.conn.log())
			}
		})
	}
}

// TestDraftIsAnswered: a node dies when only a draft of the user's words is known. A client that cannot replay its
// speech gets an answer to the draft; otherwise the model hears the speech, and not the draft as well. Both hold before
// and after the start of an answer that has not reached the client.
func TestDraftIsAnswered(t *testing.T) {
	for _, began := range []bool{false, true} {
		for _, keeps := range []bool{false, true} {
			t.Run(fmt.Sprintf("began %t, keeps its speech %t", began, keeps), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { draftAnswer(t, began, keeps) })
			})
		}
	}
}

func draftAnswer(t *testing.T, began, keeps bool) {
	f := newShelf()
	r, model := beginsAt(t, f.stage(t, "a", replaying, nil))
	said := slices.Concat(make([]byte, 2*32000), testutil.SpeechLike(16000, 3*time.Second, 5), make([]byte, 32000))
	r.conn.says(said[:5*32000])
	pass(time.Second)
	r.conn.says(said[5*32000:])
	r.read(-1)
	model.Emit(transport.Transcript{Item: "u1", Role: transport.RoleUser, Text: "Where is Ada"})
	synctest.Wait()
	if began {
		saysLong(model, "a1")
	}
	f.kill("a")

	r.st = f.stage(t, "b", replaying, nil)
	var want []transport.Past
	if keeps {
		started := r.comeBackWith(said, 0, 6000)
		if from := started["input_ms"].(float64); from < 600 || from > 2100 {
			t.Errorf("the client got %v", started)
		}
	} else {
		r.comeBack("")
		want = []transport.Past{transport.PastUser{Text: "Where is Ada"}}
	}
	next := r.st.fake.Accept(t)
	synctest.Wait()
	setups := r.st.fake.Setups()
	if got := setups[len(setups)-1].History; !slices.Equal(got, want) {
		t.Errorf("the model got %+v, want %+v", got, want)
	}
	received := allTexts(next)
	if keeps && (len(received) != 0 || !bytes.Contains(heardAll(next), said[2200*32:5000*32])) {
		t.Errorf("the model heard %d bytes, and got %q", len(heardAll(next)), received)
	}
	if !keeps && !slices.Equal(received, []string{"Where is Ada"}) {
		t.Errorf("the model got %q", received)
	}
	answers(r.conn, next, "r1", "b1", "In Vienna.")
	if m := r.conn.last(t, "turn.ended"); m["turn"] != 1.0 || m["status"] != "completed" || r.conn.count("turn.ended") != 1 || r.conn.count("error") != 0 {
		t.Errorf("the client got %q", r.conn.log())
	}
}

// TestWaitingAnswerMoves: an answer waits for a disconnected client while its session moves to another node. It has not
// reached the client, so the next node repeats it.
func TestWaitingAnswerMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		a := f.stage(t, "a", replaying, nil)
		r, model := beginsAt(t, a)
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		r.read(-1)
		r.lose()
		saysLong(model, "a1")
		wait := a.drain(20 * time.Second)
		pass(5 * time.Second)
		if rec := f.record(r.id); rec.State != store.SessionMoving {
			t.Fatalf("the record is %+v", rec)
		}
		r.st = f.stage(t, "b", replaying, nil)
		r.comeBack(r.position())
		next := r.st.fake.Accept(t)
		synctest.Wait()
		setups := r.st.fake.Setups()
		if got := setups[len(setups)-1].History; !slices.Equal(got, []transport.Past{transport.PastUser{Text: "where is Ada"}}) {
			t.Errorf("the model got %+v", got)
		}
		if received := allTexts(next); !slices.Equal(received, []string{"where is Ada"}) {
			t.Errorf("the model got %q", received)
		}
		answers(r.conn, next, "r1", "b1", "In Vienna.")
		if m := r.conn.last(t, "turn.ended"); m["turn"] != 1.0 || m["status"] != "completed" || r.conn.count("error") != 0 {
			t.Errorf("the client got %q", r.conn.log())
		}
		wait()
	})
}

// TestPlayingAnswerMoves: a session leaves its node during playback of an answer whose end may not be reported. The
// next node sends a client that has all of it the turn's end, usage and latency, and the end of the transcript. The
// model gets no request.
func TestPlayingAnswerMoves(t *testing.T) {
	for name, events := range map[string][]transport.Event{
		"complete":           {transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: long, Final: true}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted}},
		"the end is missing": {transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: long, Final: true}},
		"the ends of answer and words are missing": {transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: long}},
		"only that of the audio":                   {},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies %t", name, dies), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { soundingAnswer(t, name, events, dies) })
			})
		}
	}
}

func soundingAnswer(t *testing.T, name string, events []transport.Event, dies bool) {
	f := newShelf()
	a := f.stage(t, "a", replaying, nil)
	r, model := beginsAt(t, a)
	r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
	synctest.Wait()
	model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "It"})
	for i := range 40 {
		model.EmitAudio("a1", speech(second/10, byte(i)))
	}
	synctest.Wait()
	model.Emit(transport.AudioDone{Item: "a1"}, transport.Usage{Tokens: transport.Tokens{Input: 70, Output: 7}})
	model.Emit(events...)
	synctest.Wait()
	wait := func() time.Duration { return 0 }
	if dies {
		f.kill("a")
		r.read(-1)
	} else {
		wait = a.drain(time.Second)
		pass(time.Second)
		r.read(-1)
		if rec := f.record(r.id); rec.State != store.SessionMoving || r.conn.count("turn.ended") != 0 {
			t.Fatalf("the record is %+v, and the client got %q", rec, r.conn.log())
		}
	}
	r.st = f.stage(t, "b", replaying, nil)
	r.comeBack(r.position())
	next := r.st.fake.Accept(t)
	synctest.Wait()
	r.read(-1)
	if received := allTexts(next); len(received) != 0 {
		t.Errorf("the model got %q", received)
	}
	said := long
	if len(events) == 0 || dies && name == "the ends of answer and words are missing" {
		said = "It" // a checkpoint is not made for each word
	}
	if m := r.conn.last(t, "transcript"); m["id"] != "a1" || m["text"] != said || m["final"] != true {
		t.Errorf("the client got %+v", m)
	}
	switch ended := r.conn.count("turn.ended"); {
	case ended != 1 || r.conn.count("turn.started") != 1:
		t.Errorf("the client got %q", r.conn.log())
	default:
		m := r.conn.last(t, "turn.ended")
		if used, _ := m["usage"].(map[string]any); m["turn"] != 1.0 || m["status"] != "completed" || used["input_tokens"] != 70.0 || m["latency"] == nil {
			t.Errorf("the client got %+v", m)
		}
	}
	if _, m := f.checkpoint(t, r.id); m.State.Open != nil || m.State.Answered == nil || m.State.Answered.Untold {
		t.Errorf("the checkpoint is %+v", m.State)
	}
	wait()
}

// TestStoppedTurnEndsAfterTakeover: a node dies after the user has stopped an answer, and before the model has reported
// its end. The next node sends the client the end of that turn.
func TestStoppedTurnEndsAfterTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", replaying, nil))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "It is"})
		model.EmitAudio("a1", speech(second, 1))
		model.Emit(transport.Usage{Tokens: transport.Tokens{Input: 70, Output: 7}})
		synctest.Wait()
		r.read(-1)
		r.conn.say(`{"type":"interrupt"}`)
		pass(2 * time.Second)
		f.kill("a")
		r.read(-1)
		if r.conn.count("turn.ended") != 0 {
			t.Fatalf("the client got %q", r.conn.log())
		}

		r.st = f.stage(t, "b", replaying, nil)
		r.comeBack(r.position())
		r.st.fake.Accept(t)
		synctest.Wait()
		r.read(-1)
		m := r.conn.last(t, "turn.ended")
		if used, _ := m["usage"].(map[string]any); m["turn"] != 1.0 || m["status"] != "interrupted" || used["output_tokens"] != 7.0 {
			t.Errorf("the client got %+v", m)
		}
	})
}
