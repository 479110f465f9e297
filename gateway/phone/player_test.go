package phone

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// testPlayer is a player with a clock.
type testPlayer struct {
	player
	now   time.Time
	sent  []byte
	marks []mark
}

func newTestPlayer() *testPlayer {
	return &testPlayer{player: player{width: 1, silence: 0xFF}, now: time.Unix(1000, 0)}
}

// run sends the audio and marks that are due within the duration.
func (d *testPlayer) run(t *testing.T, length time.Duration) {
	t.Helper()
	for end := d.now.Add(length); ; {
		out, m, more, wait := d.take(nil, d.now)
		d.sent = append(d.sent, out...)
		if m != nil {
			d.marks = append(d.marks, *m)
		}
		switch {
		case more && len(out) != FrameSamples:
			t.Fatalf("a frame of %d samples", len(out))
		case more:
		case wait < 0 || !d.now.Add(wait).Before(end):
			d.now = end
			return
		default:
			d.now = d.now.Add(wait)
		}
	}
}

func audioOf(d time.Duration, b byte) []byte { return bytes.Repeat([]byte{b}, int(samples(d))) }

// TestPace: the player sends at most 200 ms ahead, without a gap.
func TestPace(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(time.Second, 1)); err != nil {
		t.Fatal(err)
	}
	d.run(t, 0)
	if got := ms(int64(len(d.sent))); got != 200 {
		t.Errorf("%d ms at once", got)
	}
	for at := 100 * time.Millisecond; at <= 800*time.Millisecond; at += 100 * time.Millisecond {
		d.run(t, 100*time.Millisecond)
		if ahead := ms(int64(len(d.sent))) - at.Milliseconds(); ahead > 200 || ahead < 140 {
			t.Errorf("after %v it is %d ms ahead", at, ahead)
		}
	}
	// The model pauses while the carrier's clock continues.
	d.run(t, 2*time.Second)
	if err := d.push(audioOf(time.Second, 1)); err != nil {
		t.Fatal(err)
	}
	before := len(d.sent)
	d.run(t, 0)
	if got := ms(int64(len(d.sent) - before)); got != 200 {
		t.Errorf("%d ms at once after a pause", got)
	}
	// After a stall of this process, the player fills the carrier's buffer once.
	d.now = d.now.Add(500 * time.Millisecond)
	before = len(d.sent)
	d.run(t, 0)
	if got := ms(int64(len(d.sent) - before)); got != 200 {
		t.Errorf("%d ms at once after a stall", got)
	}
}

// TestMarks: the player sends a mark each 200 ms and at the end; a mark that returns confirms its playback.
func TestMarks(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(510*time.Millisecond, 1)); err != nil {
		t.Fatal(err)
	}
	if m := d.end("a"); m != nil {
		t.Errorf("the mark %+v before the end was sent", m)
	}
	d.run(t, time.Second)
	var at []int64
	for _, m := range d.marks {
		at = append(at, ms(m.at))
	}
	if diff := cmp.Diff([]int64{200, 400, 510}, at); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(d.sent[:len(d.sent)-80], audioOf(510*time.Millisecond, 1)) || !bytes.Equal(d.sent[len(d.sent)-80:], audioOf(10*time.Millisecond, 0xFF)) {
		t.Error("the audio is not the pushed audio, padded with silence to a whole frame")
	}
	reports, err := d.returned(0, d.marks[1].number, d.now)
	if diff := cmp.Diff([]protocol.Playback{
		{ItemID: "a", PlayedMS: 200, ReceivedMS: 200}, {ItemID: "a", PlayedMS: 400, ReceivedMS: 400},
	}, reports); diff != "" || err != nil {
		t.Error(diff, err)
	}
	reports, err = d.returned(0, d.marks[2].number, d.now)
	if diff := cmp.Diff([]protocol.Playback{{ItemID: "a", PlayedMS: 510, ReceivedMS: 510, Done: true}}, reports); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if len(d.items) != 0 {
		t.Error("the item is still there")
	}
}

// TestEndAfterAudio: an item whose end follows its last frame still gets its last mark.
func TestEndAfterAudio(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(100*time.Millisecond, 1)); err != nil {
		t.Fatal(err)
	}
	d.run(t, time.Second)
	m := d.end("a")
	if m == nil || !m.last || ms(m.at) != 100 {
		t.Fatalf("%+v", m)
	}
	if d.end("a") != nil {
		t.Error("a second end returns a mark")
	}
	d.begin("b")
	if d.end("b") != nil || len(d.items) != 1 {
		t.Error("an item without audio has a mark, or stays")
	}
}

// TestFlush: a flush reports the playback to the frame if marks return at once. Cleared and repeated marks are ignored.
func TestFlush(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(2*time.Second, 1)); err != nil {
		t.Fatal(err)
	}
	d.run(t, 200*time.Millisecond)
	if _, err := d.returned(0, d.marks[0].number, d.now); err != nil {
		t.Fatal(err)
	}
	d.run(t, 110*time.Millisecond) // playback is at 310 ms
	reports, clear := d.flush("a", d.now)
	if diff := cmp.Diff([]protocol.Playback{{ItemID: "a", PlayedMS: 310, ReceivedMS: 310, Done: true}}, reports); diff != "" || !clear {
		t.Error(diff, clear)
	}
	sent := len(d.sent)
	d.run(t, time.Second)
	if len(d.sent) != sent {
		t.Error("audio follows a flush")
	}
	// The carrier returns the outstanding marks.
	for _, m := range slices.Concat(d.marks, d.marks) {
		if reports, err := d.returned(0, m.number, d.now); len(reports) > 0 || err != nil || d.wrong > 0 {
			t.Errorf("a cleared or repeated mark is reported as %+v, %v, wrong %d", reports, err, d.wrong)
		}
	}
	// The next item has the next generation.
	d.begin("b")
	if err := d.push(audioOf(200*time.Millisecond, 2)); err != nil {
		t.Fatal(err)
	}
	d.end("b")
	d.run(t, time.Second)
	m := d.marks[len(d.marks)-1]
	reports, err := d.returned(1, m.number, d.now)
	if diff := cmp.Diff([]protocol.Playback{{ItemID: "b", PlayedMS: 200, ReceivedMS: 200, Done: true}}, reports); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestFlushOfTwo: a flush also ends the previous item if it still plays.
func TestFlushOfTwo(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(100*time.Millisecond, 1)); err != nil {
		t.Fatal(err)
	}
	d.end("a")
	d.begin("b")
	if err := d.push(audioOf(time.Second, 2)); err != nil {
		t.Fatal(err)
	}
	d.run(t, 60*time.Millisecond)
	reports, clear := d.flush("b", d.now)
	if diff := cmp.Diff([]protocol.Playback{
		{ItemID: "a", PlayedMS: 60, ReceivedMS: 60, Done: true}, {ItemID: "b", Done: true},
	}, reports); diff != "" || !clear || len(d.items) != 0 {
		t.Error(diff, clear, d.items)
	}
}

// TestFalseMarks: too many marks that the player did not send end the call. A carrier that returns no marks gets no more audio.
func TestFalseMarks(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	if err := d.push(audioOf(time.Minute, 1)); err != nil {
		t.Fatal(err)
	}
	d.run(t, 10*time.Second)
	if got := ms(int64(len(d.sent))); got > 2200 || !d.stalled {
		t.Errorf("%d ms were sent without a mark, stalled: %v", got, d.stalled)
	}
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		_, err = d.returned(7, 99, d.now)
	}
	if !errors.Is(err, errMarks) || n != maxFalse+1 {
		t.Errorf("%v after %d", err, n)
	}
	if _, err := d.returned(0, d.marks[len(d.marks)-1].number, d.now); err != nil || d.stalled {
		t.Errorf("%v, stalled: %v", err, d.stalled)
	}
	if err := d.push(audioOf(maxQueued, 1)); !errors.Is(err, errQueue) {
		t.Errorf("the queue is not bounded: %v", err)
	}
}

// TestFramesAllocateNothing: a frame from the model's PCM to the message, and back, allocates nothing.
func TestFramesAllocateNothing(t *testing.T) {
	d := newTestPlayer()
	d.begin("a")
	s := &stream{dialect: dialects[Twilio]}
	var e event
	start := `{"event":"start","streamSid":"MZ1","start":{"accountSid":"AC1","callSid":"CA1","streamSid":"MZ1","mediaFormat":` +
		`{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1}}}`
	if err := s.read(1, []byte(start), &e); err != nil || e.kind != started || e.call.id != "CA1" {
		t.Fatalf("%+v, %v", e, err)
	}
	pcm, encoded, text, heard := make([]byte, 320), []byte(nil), []byte(nil), []byte(nil)
	media := []byte(`{"event":"media","sequenceNumber":"4","streamSid":"MZ1","media":{"track":"inbound","chunk":"2","timestamp":"5","payload":"`)
	media = AppendMedia(nil, media, make([]byte, 160))
	frames := 0
	if n := testing.AllocsPerRun(200, func() {
		encoded = e.format.encode(encoded[:0], pcm)
		if err := d.push(encoded); err != nil {
			t.Fatal(err)
		}
		d.now = d.now.Add(20 * time.Millisecond)
		out, m, more, _ := d.take(encoded[:0], d.now)
		if !more {
			t.Fatal("no frame is due")
		}
		text = s.appendMedia(text[:0], out)
		if m != nil {
			text = s.appendMark(text, 0, m.number)
			if _, err := d.returned(0, m.number, d.now); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.read(1, media, &e); err != nil || e.kind != spoke {
			t.Fatalf("%+v, %v", e, err)
		}
		heard = e.format.decode(heard[:0], e.audio)
		frames++
	}); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}
