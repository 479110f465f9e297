package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

// TestTheLastPartOfAMillisecond: positions are whole ms. A client that has the end of an answer gets
// none of it again, although the answer is half a ms longer than the client can say.
func TestTheLastPartOfAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		pcm := speech(48*300+24, 1)
		answer(model, 1, pcm)
		synctest.Wait()
		r.read(-1)
		r.sameAudio("a1", pcm)
		for range 2 { // the second time, nothing was said since the first
			r.lose()
			r.comeBack(r.position())
			if got := r.types(); got != "session.started" {
				t.Errorf("the client got %s", got)
			}
		}
	})
}

// TestWhatIsSentAgainEndsAgain: a client that has an answer's end, and not all of its audio any more,
// gets the rest and another end.
func TestWhatIsSentAgainEndsAgain(t *testing.T) {
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

// TestWhatTheNetworkLostIsFlushed: a network swallows two answers, and the gateway notices when they should long have
// been heard and their audio is held no more. The client that is back waits for nothing: what it lacks is flushed,
// and what it has all of ends. What was heard before, and what a page that was loaded again does not ask for, ends
// as it did.
func TestWhatTheNetworkLostIsFlushed(t *testing.T) {
	for name, tc := range map[string]struct {
		item    string        // the newest one that the client has
		has     time.Duration // of it; each has 300 ms
		forgets string        // what it does not name when it is back: "seq", or "all" as a new page
		flushed string
	}{
		"a part of the first":         {"a1", 100 * time.Millisecond, "", "a1 a2"},
		"all of the first":            {"a1", 300 * time.Millisecond, "", "a2"},
		"a part of the second":        {"a2", 100 * time.Millisecond, "", "a2"},
		"a part of it, and every seq": {"a2", 100 * time.Millisecond, "seq", "a2"},
		"a page that is loaded again": {"a2", 300 * time.Millisecond, "all", ""},
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
				for range 2 { // also if that is lost, too
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

// types are the types of the messages that the connection has got.
func (r *returning) types() string {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	var types []string
	for _, m := range r.conn.texts {
		types = append(types, fmt.Sprint(m["type"]))
	}
	return strings.Join(types, " ")
}

// TestASnapshotEndsWhatIsOver: the end of an answer, or its flush, is lost with many other messages,
// and a snapshot stands for them. The client learns all the same that no more of the answer comes.
func TestASnapshotEndsWhatIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		has  int // ms of the answer that the client has; the answer has 300
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
				synctest.Wait() // all of it is sent, and the client reads nothing of it
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
					t.Errorf("of the answer the client was told %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestASnapshotThatWasLost (S1): the connection that brings a snapshot breaks before the client has
// anything of it, once or more often, or another one takes its place. The client gets one all the
// same.
func TestASnapshotThatWasLost(t *testing.T) {
	for name, lose := range map[string]func(r *returning){
		"lost":             (*returning).lose,
		"another one came": func(*returning) {},
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

// pushes queues so many messages.
func pushes(t *testing.T, d *downlink, n int) {
	t.Helper()
	for range n {
		if _, err := d.pushMessage(&protocol.Pong{T: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingOldFollowsASnapshot (S1): messages that were to be sent again, and still wait when a
// snapshot is needed after all, are not sent after it: a call or a question would seem to be open that
// has ended since. The announcement of audio that follows stays.
func TestNothingOldFollowsASnapshot(t *testing.T) {
	d := newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: 4800, away: 1 << 20}, nil)
	d.held = holding{hoard: newHoard(), most: 1 << 20, ring: 4}
	d.gen = 1
	push := func(n int) { pushes(t, d, n) }
	push(2)
	for _, item := range []string{"a1", "a2"} {
		if err := d.openItem(&protocol.AudioStart{ItemID: item}); err != nil {
			t.Fatal(err)
		}
		d.pushAudio(item, make([]byte, 4800))
	}
	for range 4 {
		d.pop(1)
	}
	d.detach()
	d.resume(0, nil, 0, allHeard)
	d.attach(2) // nothing of it is written
	d.detach()
	push(6)
	if back := d.resume(0, nil, 0, allHeard); !back.snapshot {
		t.Fatal("no snapshot")
	}
	var left []string
	for _, e := range d.entries[d.head:] {
		var m struct{ Type, ItemID string }
		if e.text != nil && json.Unmarshal(bytes.ReplaceAll(e.text, []byte("item_id"), []byte("itemid")), &m) != nil {
			t.Fatalf("%s is no JSON", e.text)
		}
		left = append(left, strings.TrimSpace(m.Type+" "+m.ItemID+e.item))
	}
	if got := strings.Join(left, ", "); got != "audio.start a1, a1, audio.start a2, a2" || d.waiting != 2 {
		t.Errorf("after the snapshot come %q; %d messages are counted", got, d.waiting)
	}
	d.lose()
}

// TestNothingIsDroppedOnceAClientIsBack (S1, S2): when it is decided that a client gets everything that it
// lacks, and no snapshot, nothing of that is dropped any more: neither because the session tells it more before
// it is attached, nor because another session makes room.
func TestNothingIsDroppedOnceAClientIsBack(t *testing.T) {
	const ring, frame = 4, 4800
	d := newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: frame, away: 2 * frame}, nil)
	d.held = holding{hoard: newHoard(), most: 1 << 20, ring: ring}
	d.gen = 1
	push := func(n int) { pushes(t, d, n) }
	d.detach()
	if err := d.openItem(&protocol.AudioStart{ItemID: "a1"}); err != nil {
		t.Fatal(err)
	}
	d.pushAudio("a1", make([]byte, frame))
	push(ring - 1)
	if back := d.resume(0, nil, 0, allHeard); back.snapshot {
		t.Fatal("there is room for all of it, and it needs a snapshot")
	}
	push(2)
	d.shed()
	d.pushAudio("a1", make([]byte, 2*frame))
	if err := d.lead(&protocol.SessionStarted{}); err != nil {
		t.Fatal(err)
	}
	d.attach(2)
	d.speak(2)
	texts, pcm := 0, 0
	for e, ok := d.pop(2); ok; e, ok = d.pop(2) {
		if e.text != nil {
			texts++
		}
		if e.frame != nil {
			pcm += len(e.frame.pcm)
		}
	}
	if want := 1 + 1 + (ring - 1) + 2; texts != want || pcm != 3*frame {
		t.Errorf("the client gets %d messages and %d bytes of audio, want %d and %d", texts, pcm, want, 3*frame)
	}
	d.detach()
	push(ring + 1)
	if back := d.resume(d.seq, nil, 0, allHeard); !back.snapshot {
		t.Error("it was away again, and more was said than is kept: it needs a snapshot")
	}
	d.lose()
}

// TestASnapshotTellsWhatIsOpen (S5): a client that has forgotten everything learns of the open question
// and of the call that runs. The question can be answered, once, and the call's end is told.
func TestASnapshotTellsWhatIsOpen(t *testing.T) {
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
			t.Errorf("of calls the client was told %v", r.conn.log())
		}
		pass(6 * time.Second)
		if n := r.conn.count("tool.ended"); n != 1 {
			t.Errorf("the client was told %d times of the call's end", n)
		}
		resolve(r.conn, first, true)
		resolve(r.conn, first, true)
		pass(6 * time.Second)
		r.conn.expect(t, "session.started", "error confirmation_used")
		if got := tl.payments(); len(got) != 2 {
			t.Errorf("paid %+v", got)
		}
	})
}

// TestABacklogIsKeptForAClientThatComesBack (S1, S2): a client that falls too far behind loses its
// connection in the middle of a step, and nothing of what the step told it.
func TestABacklogIsKeptForAClientThatComesBack(t *testing.T) {
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

// TestNoMessageIsLostBehindAFullQueue (S1): one step may tell the client several things, the first of
// which is one too many. A client that can come back loses its connection after the step, so the
// others are kept too.
func TestNoMessageIsLostBehindAFullQueue(t *testing.T) {
	for _, back := range []bool{true, false} {
		d := newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 10, frame: 4800, away: 1 << 20}, nil)
		if back {
			d.held = holding{hoard: newHoard(), most: 1 << 20, ring: maxHeldMessages}
		}
		d.gen = 1
		for range 3 {
			if fits, err := d.pushMessage(&protocol.Pong{T: 1}); fits || err != nil {
				t.Errorf("the queue takes more: %v, %v", fits, err)
			}
		}
		if want := map[bool]int{true: 3, false: 1}[back]; d.waiting != want {
			t.Errorf("can it come back: %v; %d messages wait, want %d", back, d.waiting, want)
		}
		d.lose()
	}
}

// TestAReloadInTheMiddleOfAnAnswer: what is flushed is not announced once more before, whether the
// model goes on while nobody is there or not.
func TestAReloadInTheMiddleOfAnAnswer(t *testing.T) {
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

// TestWhatArrivedUnnoticedStillSounds: the client has a frame of which the gateway has not noticed that
// it was written. The user hears it from when it was sent, not long ago.
func TestWhatArrivedUnnoticedStillSounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: 4800, away: 1 << 20}, nil)
		d.held = holding{hoard: newHoard(), most: 1 << 20, ring: maxHeldMessages}
		d.gen = 1
		if err := d.openItem(&protocol.AudioStart{ItemID: "a1"}); err != nil {
			t.Fatal(err)
		}
		d.pushAudio("a1", make([]byte, 48*100))
		if _, ok := d.pop(1); !ok {
			t.Fatal("nothing is queued")
		}
		d.detach()
		d.resume(1, &protocol.ResumeAudio{ItemID: "a1", ReceivedMS: 100}, 0, allHeard)
		sent := d.left()
		if i := slices.IndexFunc(sent, func(s orchestrator.AudioSent) bool { return s.Item == "a1" }); i < 0 || sent[i].Until.Before(time.Now()) {
			t.Errorf("told: %+v", sent)
		}
		d.lose()
	})
}

// sentWhole is a link of a session that can be resumed. It has sent an item of three frames, a, and its end.
func sentWhole(t *testing.T) *slowLink {
	t.Helper()
	l := newSlowLink(t)
	l.most.away = 1 << 20
	l.held = holding{hoard: newHoard(), most: 1 << 20, ring: maxHeldMessages}
	l.item("a", 3)
	l.write(4)
	return l
}

// TestAnEndThatIsSentAgainPromisesNoMore: a client comes back that lacks the last part of an answer and its
// end, and the session is over before that part was sent again. The end keeps its number, and says how
// much the client has been sent.
func TestAnEndThatIsSentAgainPromisesNoMore(t *testing.T) {
	l := sentWhole(t)
	l.detach()
	back := l.resume(1, &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}, 0, allHeard)
	if len(back.again) != 1 || back.snapshot {
		t.Fatalf("sent again: %+v", back)
	}
	if err := l.lead(&protocol.SessionStarted{SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	l.attach(0)
	l.speak(0)
	l.got = nil
	l.write(2) // the beginning, and one frame of two
	if err := l.finish(&protocol.SessionEnded{Reason: "operator"}); err != nil {
		t.Fatal(err)
	}
	l.write(3)
	want := []string{"frame of a", audioEnd(2, "a", 200), `{"type":"session.ended","seq":5,"reason":"operator"}`}
	if diff := cmp.Diff(want, l.got[2:]); diff != "" {
		t.Error(diff)
	}
}

// TestAnAnswerThatIsSentAgainIsFlushed (S2): a client comes back that has a part of an answer, and before it is
// sent the rest, the user says something else: the client gets a flush, and no end that promises more than it
// has. The flush stands where the answer's end stood, if the client lacks that, too.
func TestAnAnswerThatIsSentAgainIsFlushed(t *testing.T) {
	const lacksBoth, lacksAudio = 1, 2 // the highest seq that it has: of the beginning, or of the end
	for name, tc := range map[string]struct {
		last  int64
		again int // how often its connection is lost once more before anything is sent
		want  []string
	}{
		"its end is lacking":             {lacksBoth, 0, []string{audioFlush(2, "a"), `{"type":"pong","seq":4,"t":1}`}},
		"its end is known":               {lacksAudio, 0, []string{`{"type":"pong","seq":4,"t":1}`, audioFlush(5, "a")}},
		"lost again, its end is lacking": {lacksBoth, 1, []string{audioFlush(2, "a"), `{"type":"pong","seq":4,"t":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			l := sentWhole(t)
			for range 1 + tc.again {
				l.detach()
				l.resume(tc.last, &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}, 0, allHeard)
				if err := l.lead(&protocol.SessionStarted{SessionID: "s"}); err != nil {
					t.Fatal(err)
				}
				l.attach(0)
			}
			if _, err := l.pushMessage(&protocol.Pong{T: 1}); err != nil {
				t.Fatal(err)
			}
			l.flush("a")
			l.speak(0)
			l.got = nil
			l.write(len(l.entries))
			if diff := cmp.Diff(tc.want, l.got[1:]); diff != "" {
				t.Error(diff)
			}
			if l.audio != 0 || l.bytes != 0 || l.waiting != 0 || l.words != 0 {
				t.Errorf("%d bytes are said to wait, %d of them audio, and %d messages with %d bytes", l.bytes, l.audio, l.waiting, l.words)
			}
		})
	}
}

// TestAnAnswerThatIsDroppedWhileItIsSentAgainIsFlushed (S2): audio that was to be sent again waits for a client
// that is lost once more, and there is no room for it. The client knows the item, so it gets a flush.
func TestAnAnswerThatIsDroppedWhileItIsSentAgainIsFlushed(t *testing.T) {
	l := sentWhole(t)
	has := &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}
	l.detach()
	l.resume(1, has, 0, allHeard)
	l.attach(0)
	l.most.away = slowFrame
	l.detach()
	if back := l.resume(1, has, 0, allHeard); !slices.Equal(back.gone, []string{"a"}) {
		t.Fatalf("gone: %v", back.gone)
	}
	l.attach(0)
	l.flush("a")
	l.got = nil
	l.wrote(audioFlush(2, "a"))
}

// allHeard says of every item that the user has heard some of it.
func allHeard(string) bool { return false }
