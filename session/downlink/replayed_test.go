package downlink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"voicegw/orchestrator"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// pushes queues n messages.
func pushes(t *testing.T, d *Queue, n int) {
	t.Helper()
	for range n {
		if _, err := d.PushMessage(&protocol.Pong{T: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotReplacesReplay (S1): messages that wait for a replay are not sent after a snapshot, as a call or question
// that has ended would seem to be open. The announcement of the following audio remains.
func TestSnapshotReplacesReplay(t *testing.T) {
	d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800, Away: 1 << 20}, nil)
	d.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: 4}
	d.gen = 1
	push := func(n int) { pushes(t, d, n) }
	push(2)
	for _, item := range []string{"a1", "a2"} {
		if err := d.OpenItem(&protocol.AudioStart{ItemID: item}); err != nil {
			t.Fatal(err)
		}
		d.PushAudio(item, make([]byte, 4800))
	}
	for range 4 {
		d.Pop(1)
	}
	d.Detach()
	d.Resume(0, nil, 0, allHeard)
	d.Attach(2) // nothing is written
	d.Detach()
	push(6)
	if back := d.Resume(0, nil, 0, allHeard); !back.Snapshot {
		t.Fatal("no snapshot")
	}
	var left []string
	for _, e := range d.entries[d.head:] {
		var m struct{ Type, ItemID string }
		if e.Text != nil && json.Unmarshal(bytes.ReplaceAll(e.Text, []byte("item_id"), []byte("itemid")), &m) != nil {
			t.Fatalf("%s is not JSON", e.Text)
		}
		left = append(left, strings.TrimSpace(m.Type+" "+m.ItemID+e.item))
	}
	if got := strings.Join(left, ", "); got != "audio.start a1, a1, audio.start a2, a2" || d.waiting != 2 {
		t.Errorf("after the snapshot: %q; %d messages are counted", got, d.waiting)
	}
	d.Lose()
}

// TestReplayIsNotDropped (S1, S2): once a replay instead of a snapshot is decided, nothing of it is dropped, neither
// for new messages before the client is attached, nor for the memory of another session.
func TestReplayIsNotDropped(t *testing.T) {
	const ring, frame = 4, 4800
	d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: frame, Away: 2 * frame}, nil)
	d.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: int32(ring)}
	d.gen = 1
	push := func(n int) { pushes(t, d, n) }
	d.Detach()
	if err := d.OpenItem(&protocol.AudioStart{ItemID: "a1"}); err != nil {
		t.Fatal(err)
	}
	d.PushAudio("a1", make([]byte, frame))
	push(ring - 1)
	if back := d.Resume(0, nil, 0, allHeard); back.Snapshot {
		t.Fatal("there is room for everything, but it needs a snapshot")
	}
	push(2)
	d.shed()
	d.PushAudio("a1", make([]byte, 2*frame))
	if err := d.Lead(&protocol.SessionStarted{}); err != nil {
		t.Fatal(err)
	}
	d.Attach(2)
	d.Speak(2)
	texts, pcm := 0, 0
	for e, ok := d.Pop(2); ok; e, ok = d.Pop(2) {
		if e.Text != nil {
			texts++
		}
		if e.Frame != nil {
			pcm += len(e.Frame.PCM)
		}
	}
	if want := 1 + 1 + (ring - 1) + 2; texts != want || pcm != 3*frame {
		t.Errorf("the client gets %d messages and %d bytes of audio, want %d and %d", texts, pcm, want, 3*frame)
	}
	d.Detach()
	push(ring + 1)
	if back := d.Resume(d.seq, nil, 0, allHeard); !back.Snapshot {
		t.Error("after another disconnection with too much data it needs a snapshot")
	}
	d.Lose()
}

// sentWhole returns the link of a resumable session that has sent item a of three frames, and its end.
func sentWhole(t *testing.T) *slowLink {
	t.Helper()
	l := newSlowLink(t)
	l.most.Away = 1 << 20
	l.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: MaxKept}
	l.item("a", 3)
	l.write(4)
	return l
}

// TestReplayedEnd: a client that lacks the last part of an answer and its end resumes, and the session ends before that
// part was replayed. The end keeps its number, and gives the length that the client has received.
func TestReplayedEnd(t *testing.T) {
	l := sentWhole(t)
	l.Detach()
	back := l.Resume(1, &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}, 0, allHeard)
	if len(back.Again) != 1 || back.Snapshot {
		t.Fatalf("replayed: %+v", back)
	}
	if err := l.Lead(&protocol.SessionStarted{SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	l.Attach(0)
	l.Speak(0)
	l.got = nil
	l.write(2) // the beginning, and one frame of two
	if err := l.Finish(&protocol.SessionEnded{Reason: "operator"}); err != nil {
		t.Fatal(err)
	}
	l.write(3)
	want := []string{"frame of a", audioEnd(2, "a", 200), `{"type":"session.ended","seq":5,"reason":"operator"}`}
	if diff := cmp.Diff(want, l.got[2:]); diff != "" {
		t.Error(diff)
	}
}

// TestFlushDuringReplay (S2): a client resumes with a part of an answer, and the user speaks before the rest is
// replayed: the client gets a flush, and no end with a greater length. If the client lacks the end, the flush replaces
// it.
func TestFlushDuringReplay(t *testing.T) {
	const lacksBoth, lacksAudio = 1, 2 // the highest seq that it has: of the beginning, or of the end
	for name, tc := range map[string]struct {
		last  int64
		again int // further losses of the connection before anything is sent
		want  []string
	}{
		"its end is missing":             {lacksBoth, 0, []string{audioFlush(2, "a"), `{"type":"pong","seq":4,"t":1}`}},
		"its end is known":               {lacksAudio, 0, []string{`{"type":"pong","seq":4,"t":1}`, audioFlush(5, "a")}},
		"lost again, its end is missing": {lacksBoth, 1, []string{audioFlush(2, "a"), `{"type":"pong","seq":4,"t":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			l := sentWhole(t)
			for range 1 + tc.again {
				l.Detach()
				l.Resume(tc.last, &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}, 0, allHeard)
				if err := l.Lead(&protocol.SessionStarted{SessionID: "s"}); err != nil {
					t.Fatal(err)
				}
				l.Attach(0)
			}
			if _, err := l.PushMessage(&protocol.Pong{T: 1}); err != nil {
				t.Fatal(err)
			}
			l.flush("a")
			l.Speak(0)
			l.got = nil
			l.write(len(l.entries))
			if diff := cmp.Diff(tc.want, l.got[1:]); diff != "" {
				t.Error(diff)
			}
			if l.audio != 0 || l.bytes != 0 || l.waiting != 0 || l.words != 0 {
				t.Errorf("counted as waiting: %d bytes, %d of them audio, and %d messages with %d bytes", l.bytes, l.audio, l.waiting, l.words)
			}
		})
	}
}

// TestDropDuringReplay (S2): the client is lost again during a replay, and there is no room for the audio. The client
// knows the item, so it gets a flush.
func TestDropDuringReplay(t *testing.T) {
	l := sentWhole(t)
	has := &protocol.ResumeAudio{ItemID: "a", ReceivedMS: 100}
	l.Detach()
	l.Resume(1, has, 0, allHeard)
	l.Attach(0)
	l.most.Away = slowFrame
	l.Detach()
	if back := l.Resume(1, has, 0, allHeard); !slices.Equal(back.Gone, []string{"a"}) {
		t.Fatalf("gone: %v", back.Gone)
	}
	l.Attach(0)
	l.flush("a")
	l.got = nil
	l.wrote(audioFlush(2, "a"))
}

// TestHeardByTheClock (S2): by the clock the user has heard an answer whose audio is therefore not held any more, but the
// client's program has not taken it. The client gets no end of an item that it never hears of, and a flush of one that it
// knows, or gets to know.
func TestHeardByTheClock(t *testing.T) {
	lost := func(seq int) string {
		return fmt.Sprintf(`{"type":"audio.flush","seq":%d,"item_id":"b","reason":"connection_lost"}`, seq)
	}
	for name, tc := range map[string]struct {
		ring int32
		last int64 // what the client has
		has  string
		want []string
	}{
		"unknown, with a snapshot": {4, 2, "a", nil},
		"unknown, with a replay":   {MaxKept, 2, "a", []string{`{"type":"audio.start","seq":3,"item_id":"b"}`, lost(4)}},
		"known, with a snapshot":   {4, 3, "b", []string{lost(10)}},
		"known, with a replay":     {MaxKept, 3, "b", []string{lost(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlowLink(t)
			l.most.Away = 1 << 20
			l.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: tc.ring}
			l.item("a", 1)
			l.item("b", 3)
			pushes(t, l.Queue, 5)
			l.write(20)
			l.held.received("b", 2*slowFrame)
			l.Detach()
			back := l.Resume(tc.last, &protocol.ResumeAudio{ItemID: tc.has, ReceivedMS: 100}, 0, allHeard)
			if err := back.Flush(l.Queue); err != nil {
				t.Fatal(err)
			}
			l.Attach(0)
			l.got = nil
			l.write(20)
			l.got = slices.DeleteFunc(l.got, func(m string) bool { return strings.Contains(m, "pong") || strings.Contains(m, `"a"`) })
			if diff := cmp.Diff(tc.want, l.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// allHeard: the user has heard some of every item.
func allHeard(string) bool { return false }

// TestFullQueueKeepsMessages (S1): the first of several messages of one step may exceed the queue. A client that can
// resume is disconnected after the step, so the other messages are held as well.
func TestFullQueueKeepsMessages(t *testing.T) {
	for _, back := range []bool{true, false} {
		d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 10, Frame: 4800, Away: 1 << 20}, nil)
		if back {
			d.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: MaxKept}
		}
		d.gen = 1
		for range 3 {
			if fits, err := d.PushMessage(&protocol.Pong{T: 1}); fits || err != nil {
				t.Errorf("the queue accepts more: %v, %v", fits, err)
			}
		}
		if want := map[bool]int{true: 3, false: 1}[back]; d.waiting != want {
			t.Errorf("resumable: %v; %d messages wait, want %d", back, d.waiting, want)
		}
		d.Lose()
	}
}

// TestUnnoticedFrameIsPlaying: the client has a frame before the gateway notices that it was written. Its playback
// counts from when it was sent.
func TestUnnoticedFrameIsPlaying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800, Away: 1 << 20}, nil)
		d.held = replayBuffer{budget: NewBudget(), most: 1 << 20, ring: MaxKept}
		d.gen = 1
		if err := d.OpenItem(&protocol.AudioStart{ItemID: "a1"}); err != nil {
			t.Fatal(err)
		}
		d.PushAudio("a1", make([]byte, 48*100))
		if _, ok := d.Pop(1); !ok {
			t.Fatal("nothing is queued")
		}
		d.Detach()
		d.Resume(1, &protocol.ResumeAudio{ItemID: "a1", ReceivedMS: 100}, 0, allHeard)
		sent := d.Left()
		if i := slices.IndexFunc(sent, func(s orchestrator.AudioSent) bool { return s.Item == "a1" }); i < 0 || sent[i].Until.Before(time.Now()) {
			t.Errorf("reported: %+v", sent)
		}
		d.Lose()
	})
}
