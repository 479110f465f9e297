package downlink

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// slowLink is a downlink with explicit writes, and the written data.
type slowLink struct {
	*Queue
	t   *testing.T
	got []string
}

const slowFrame = 4800 // 100 ms at 24 kHz

func newSlowLink(t *testing.T) *slowLink {
	return &slowLink{newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: slowFrame}, nil), t, nil}
}

// write writes n entries.
func (l *slowLink) write(n int) {
	l.t.Helper()
	for range n {
		e, ok := l.Pop(0)
		if !ok {
			return
		}
		if e.Text != nil {
			l.got = append(l.got, string(e.Text))
		}
		if e.Frame != nil {
			l.got = append(l.got, "frame of "+e.item)
		}
		l.Written(0, e)
	}
}

// item queues an item of the given frames, and its end.
func (l *slowLink) item(id string, frames int) {
	l.t.Helper()
	if err := l.OpenItem(&protocol.AudioStart{ItemID: id}); err != nil {
		l.t.Fatal(err)
	}
	for range frames {
		l.PushAudio(id, make([]byte, slowFrame))
	}
	if _, err := l.EndItem(&protocol.AudioEnd{ItemID: id, AudioMS: int64(100 * frames)}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *slowLink) flush(id string) {
	l.t.Helper()
	if _, err := l.FlushItem(&protocol.AudioFlush{ItemID: id, Reason: "user_speech"}); err != nil {
		l.t.Fatal(err)
	}
}

// wrote writes the rest, and compares everything written.
func (l *slowLink) wrote(want ...string) {
	l.t.Helper()
	l.write(len(l.entries))
	if diff := cmp.Diff(want, l.got); diff != "" {
		l.t.Error(diff)
	}
	if l.audio != 0 || l.bytes != 0 || l.waiting != 0 {
		l.t.Errorf("counted as waiting: %d bytes, %d of them audio, and %d messages", l.bytes, l.audio, l.waiting)
	}
}

func audioStart(seq int, item string) string {
	return fmt.Sprintf(`{"type":"audio.start","seq":%d,"item_id":%q}`, seq, item)
}

func audioEnd(seq int, item string, ms int) string {
	return fmt.Sprintf(`{"type":"audio.end","seq":%d,"item_id":%q,"audio_ms":%d}`, seq, item, ms)
}

func audioFlush(seq int, item string) string {
	return fmt.Sprintf(`{"type":"audio.flush","seq":%d,"item_id":%q,"reason":"user_speech"}`, seq, item)
}

// TestUnsentAudioIsNotReported: if the session ends before everything was sent, audio.end gives the sent length, items
// without sent audio are omitted, and no seq is missing.
func TestUnsentAudioIsNotReported(t *testing.T) {
	l := newSlowLink(t)
	l.item("a", 1)
	l.item("b", 3)
	l.item("c", 2)
	l.write(3) // a, its end, and one frame of b
	if err := l.Finish(&protocol.SessionEnded{Reason: "client_ended"}); err != nil {
		t.Fatal(err)
	}
	l.wrote(audioStart(1, "a"), "frame of a", audioEnd(2, "a", 100), audioStart(3, "b"), "frame of b",
		audioEnd(4, "b", 100), `{"type":"session.ended","seq":5,"reason":"client_ended"}`)
}

// TestFlushedItemsAreDropped: a flush ends its item without audio.end; an item that was not announced to the client is
// omitted completely. Other messages in between are sent.
func TestFlushedItemsAreDropped(t *testing.T) {
	l := newSlowLink(t)
	l.item("a", 3)
	l.PushMessage(&protocol.Pong{T: 7})
	l.item("b", 3)
	if err := l.OpenItem(&protocol.AudioStart{ItemID: "c"}); err != nil { // not yet announced by audio
		t.Fatal(err)
	}
	l.write(1)
	for _, id := range []string{"a", "b", "c"} {
		l.flush(id)
	}
	l.PushAudio("c", make([]byte, slowFrame))
	l.item("b", 0)
	l.wrote(audioStart(1, "a"), "frame of a", `{"type":"pong","seq":2,"t":7}`, audioFlush(3, "a"))
	if l.FlushedBytes() != 6*slowFrame {
		t.Errorf("%d bytes are counted as flushed", l.FlushedBytes())
	}
}

// TestSilentItemIsOmitted: neither its start nor its end is sent.
func TestSilentItemIsOmitted(t *testing.T) {
	l := newSlowLink(t)
	l.item("a", 0)
	l.item("b", 1)
	l.wrote(audioStart(1, "b"), "frame of b", audioEnd(2, "b", 100))
	if l.Left(); len(l.items) != 0 {
		t.Errorf("%d items are remembered", len(l.items))
	}
}

// TestWrittenItems: each written item is reported once, and a flushed item is no longer reported.
func TestWrittenItems(t *testing.T) {
	l := newSlowLink(t)
	l.item("a", 2)
	l.item("b", 2)
	next := func() string {
		var all []string
		for _, in := range l.Left() {
			all = append(all, fmt.Sprintf("%s %d", in.Item, in.Sent.Milliseconds()))
		}
		return strings.Join(all, ", ")
	}
	for _, tc := range []struct {
		writes int
		want   string
	}{{0, ""}, {1, "a 100"}, {0, ""}, {3, "a 200, b 100"}, {0, ""}} {
		l.write(tc.writes)
		if got := next(); got != tc.want {
			t.Errorf("after %d more entries: %q, want %q", tc.writes, got, tc.want)
		}
	}
	e, _ := l.Pop(0)
	l.flush("b")
	l.Written(0, e) // the write was in progress
	if got := next(); got != "" || len(l.items) != 0 {
		t.Errorf("for a flushed item: %q; %d items are remembered", got, len(l.items))
	}
}

func newDownlink(most Bounds, write func(gen int)) *Queue {
	d := new(Queue)
	d.Begin(most, write)
	return d
}
