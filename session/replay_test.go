package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
	"voicegw/transport"
)

// TestHalfAMillisecond: positions are whole ms. A client that has the end of an answer gets none of it again, although
// the answer is half a ms longer than the position.
func TestHalfAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		pcm := speech(48*300+24, 1)
		answer(model, 1, pcm)
		synctest.Wait()
		r.read(-1)
		r.sameAudio("a1", pcm)
		for range 2 { // before the second resume nothing new was said
			r.lose()
			r.comeBack(r.position())
			if got := r.types(); got != "session.started" {
				t.Errorf("the client got %s", got)
			}
		}
	})
}

// TestReplayEndsAgain: a client that has an answer's end, but lacks some of its audio, gets the rest and another end.
func TestReplayEndsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		pcm := speech(48*300+24, 1)
		answer(model, 1, pcm)
		synctest.Wait()
		r.read(-1)
		for range 2 {
			r.lose()
			r.comeBack(`,"audio":{"item_id":"a1","received_ms":50}`)
			r.read(-1)
			if got := r.types(); got != "session.started audio.start audio.end" {
				t.Errorf("the client got %s", got)
			}
			if m := r.conn.last(t, "audio.end"); m["audio_ms"] != 300.0 {
				t.Errorf("the end says %v", m)
			}
			r.sameAudio("a1", pcm)
		}
	})
}

// TestLostAnswersAreFlushed: the network loses two answers, and the gateway notices when it no longer holds their
// audio. When the client resumes, incomplete items are flushed and complete ones end. Items heard before, and items
// that a reloaded page does not ask for, keep their end.
func TestLostAnswersAreFlushed(t *testing.T) {
	for name, tc := range map[string]struct {
		item    string        // the newest one that the client has
		has     time.Duration // of this item; each has 300 ms
		forgets string        // missing in the resume: "seq", or "all" for a new page
		flushed string
	}{
		"a part of the first":               {"a1", 100 * time.Millisecond, "", "a1 a2"},
		"all of the first":                  {"a1", 300 * time.Millisecond, "", "a2"},
		"a part of the second":              {"a2", 100 * time.Millisecond, "", "a2"},
		"a part of the second, without seq": {"a2", 100 * time.Millisecond, "seq", "a2"},
		"a reloaded page":                   {"a2", 300 * time.Millisecond, "all", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, nil)
				r.conn.say(`{"type":"input.text","text":"hello"}`)
				for i := range 3 {
					synctest.Wait()
					answer(model, i+1, speech(48*300, 1))
					synctest.Wait()
					pass(20 * time.Second)
				}
				for len(r.audio[tc.item]) < int(tc.has/time.Millisecond)*48 {
					r.read(1)
				}
				for range 2 { // also if the first attempt is lost
					r.lose()
					position := r.position()
					if tc.forgets != "" {
						r.highest = 0
					}
					if tc.forgets == "all" {
						position = ""
					}
					r.comeBack(position)
				}
				r.read(-1)
				flushed := slices.Sorted(maps.Keys(r.flushed))
				if got := strings.Join(flushed, " "); got != tc.flushed {
					t.Errorf("flushed: %q, want %q", got, tc.flushed)
				}
			})
		})
	}
}

// types returns the types of the connection's messages.
func (r *returning) types() string {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	var types []string
	for _, m := range r.conn.texts {
		types = append(types, fmt.Sprint(m["type"]))
	}
	return strings.Join(types, " ")
}

// TestSnapshotEndsAnswer: the end or flush of an answer is lost with many other messages, which a snapshot replaces.
// The client still learns that the answer has ended.
func TestSnapshotEndsAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		has  int // ms of the answer that the client has, of 300
		over func(r *returning, emit func(...transport.Event))
		want string
	}{
		"all but the end": {300, func(*returning, func(...transport.Event)) {}, "audio.end"},
		"half of it":      {150, func(*returning, func(...transport.Event)) {}, "audio.start audio.end"},
		"flushed": {300, func(r *returning, emit func(...transport.Event)) {
			emit(transport.SpeechStarted{Item: "u1"}, transport.Interrupted{})
		}, "audio.end"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, nil)
				r.conn.say(`{"type":"input.text","text":"hello"}`)
				synctest.Wait()
				model.Emit(transport.ResponseStarted{ID: "r1"}, &transport.AudioOut{Item: "a1", PCM: speech(48*300, 1)})
				synctest.Wait()
				r.read(-1)
				model.Emit(transport.AudioDone{Item: "a1"})
				tc.over(r, model.Emit)
				for i := range 60 {
					model.Emit(transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: strings.Repeat("w", 5000+200*i)})
				}
				synctest.Wait() // everything is sent, and the client reads nothing
				r.lose()
				r.comeBack(fmt.Sprintf(`,"audio":{"item_id":"a1","received_ms":%d}`, tc.has))
				r.read(-1)
				if !r.gaps {
					t.Fatal("no snapshot")
				}
				var about []string
				for _, m := range r.conn.texts {
					if m["item_id"] == "a1" {
						about = append(about, fmt.Sprint(m["type"]))
					}
				}
				if got := strings.Join(about, " "); got != tc.want {
					t.Errorf("for the answer the client got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestLostSnapshot (S1): a connection with a snapshot breaks before the client reads it, once or several times, or
// another connection replaces it. The client still gets a snapshot.
func TestLostSnapshot(t *testing.T) {
	for name, lose := range map[string]func(r *returning){
		"lost":     (*returning).lose,
		"replaced": func(*returning) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, func(o *Options) { o.Limits.Held = 4 })
				r.conn.say(`{"type":"input.text","text":"hello"}`)
				synctest.Wait()
				r.read(-1)
				r.lose()
				for i := range 6 {
					model.Emit(transport.Transcript{Item: fmt.Sprint("a", i), Role: transport.RoleAssistant, Text: "words", Final: true})
				}
				synctest.Wait()
				for range 3 {
					r.comeBack("")
					lose(r)
				}
				r.comeBack("")
				r.read(-1)
				if !r.gaps || r.conn.count("transcript") != 7 {
					t.Errorf("snapshot: %v; the client got %v", r.gaps, r.conn.log())
				}
			})
		})
	}
}

// TestSnapshotOfOpenCalls (S5): a client without state learns of the open question and the running call. The question
// can be answered once, and the call's end is reported.
func TestSnapshotOfOpenCalls(t *testing.T) {
	onStage(t, withGrace, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.takes = 5 * time.Second
		first := tl.asksToPay(c, model, "u1")
		tl.calls(model, "u2", "pay", `{"to":"Ada","amount":7}`)
		says(c, model, "question_u2")
		second, _ := c.last(t, "confirmation.request")["token"].(string)
		resolve(c, second, true)
		r := tl.back(t, c)
		r.acknowledge()
		r.lose()
		r.highest = 0
		r.comeBack("")
		if m := r.conn.last(t, "session.started"); m["snapshot"] != true {
			t.Fatalf("no snapshot: %v", m)
		}
		if m := r.conn.last(t, "confirmation.request"); m["token"] != first || r.conn.count("confirmation.request") != 1 {
			t.Errorf("the client was asked %v", r.conn.log())
		}
		if m := r.conn.last(t, "tool.started"); m["tool"] != "pay" || r.conn.count("tool.started") != 1 {
			t.Errorf("the client got the calls %v", r.conn.log())
		}
		pass(6 * time.Second)
		if n := r.conn.count("tool.ended"); n != 1 {
			t.Errorf("the client got the call's end %d times", n)
		}
		resolve(r.conn, first, true)
		resolve(r.conn, first, true)
		pass(6 * time.Second)
		r.conn.expect(t, "session.started", "error confirmation_used")
		if got := tl.payments(); len(got) != 2 {
			t.Errorf("payments %+v", got)
		}
	})
}

// TestBacklogAfterDisconnect (S1, S2): a client that is too slow is disconnected in the middle of a step, and loses no
// message of the step.
func TestBacklogAfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, func(o *Options) { o.Limits.Backlog = time.Second })
		r.read(-1)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		r.read(-1)
		r.conn.stallWrites()
		pcm := speech(48*4000, 1)
		answer(model, 1, pcm[:48*2000])
		model.Emit(&transport.AudioOut{Item: "a2", PCM: pcm[48*2000:]}, transport.AudioDone{Item: "a2"})
		synctest.Wait()
		r.conn.ended(t, protocol.CloseSlowClient)
		r.comeBack(r.position())
		r.read(-1)
		r.sameAudio("a1", pcm[:48*2000])
		r.sameAudio("a2", pcm[48*2000:])
		r.noteLeads()
		r.shown()
	})
}

// TestReloadDuringAnswer: a flushed item is not announced again before its flush, whether or not the model continued
// while the client was disconnected.
func TestReloadDuringAnswer(t *testing.T) {
	for _, more := range []int{0, 48 * 100} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, nil)
				r.conn.say(`{"type":"input.text","text":"hello"}`)
				synctest.Wait()
				model.Emit(transport.ResponseStarted{ID: "r1"}, &transport.AudioOut{Item: "a1", PCM: speech(48*1000, 1)})
				synctest.Wait()
				r.read(-1)
				pass(500 * time.Millisecond)
				r.lose()
				model.EmitAudio("a1", speech(more, 2))
				synctest.Wait()
				r.reload()
				r.comeBack("")
				r.read(-1)
				if got := r.types(); strings.Contains(got, "audio.start") || !r.flushed["a1"] {
					t.Errorf("the client got %s", got)
				}
			})
		})
	}
}
