package downlink

import (
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestDownlinkClaim: audio can bypass the queue only for the open item, while the queue is empty and no writer writes.
// Otherwise it could belong to a flushed item, or overtake a message.
func TestDownlinkClaim(t *testing.T) {
	open := func() *Queue {
		d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800}, nil)
		if err := d.OpenItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
			t.Fatal(err)
		}
		if d.Claim(0, "a", []byte{0, 0}) {
			t.Error("audio would overtake its audio.start")
		}
		d.PushAudio("a", []byte{0, 0})
		e, _ := d.Pop(0) // audio.start and the first frame have been written
		d.Written(0, e)
		d.Pop(0)
		return d
	}
	for _, tc := range []struct {
		name   string
		before func(d *Queue)
		item   string
		want   bool
	}{
		{"open, nothing queued", func(*Queue) {}, "a", true},
		{"another item", func(*Queue) {}, "b", false},
		{"flushed", func(d *Queue) { d.FlushItem(&protocol.AudioFlush{ItemID: "a"}); d.Pop(0); d.Pop(0) }, "a", false},
		{"ended", func(d *Queue) { d.EndItem(&protocol.AudioEnd{ItemID: "a"}); d.Pop(0); d.Pop(0) }, "a", false},
		{"a message waits", func(d *Queue) { d.PushMessage(&protocol.Pong{}) }, "a", false},
		{"a frame waits", func(d *Queue) { d.PushAudio("a", []byte{0, 0}) }, "a", false},
		{"a writer writes", func(d *Queue) { d.PushMessage(&protocol.Pong{}); d.Pop(0) }, "a", false},
		{"claimed", func(d *Queue) { d.Claim(0, "a", []byte{0, 0}) }, "a", false},
		{"finished", func(d *Queue) { d.Finish() }, "a", false},
		{"lost", func(d *Queue) { d.Lose() }, "a", false},
	} {
		d := open()
		tc.before(d)
		if ok := d.Claim(0, tc.item, []byte{0, 0}); ok != tc.want {
			t.Errorf("%s: claimed=%t, want %t", tc.name, ok, tc.want)
		}
	}
}

// TestDownlinkWriterAfterClaim: no writer starts during a claim. Release starts one for the messages queued since then,
// and Wait waits for it.
func TestDownlinkWriterAfterClaim(t *testing.T) {
	var written []string
	var d *Queue
	d = newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800}, func(int) {
		for e, ok := d.Pop(0); ok; e, ok = d.Pop(0) {
			written = append(written, string(e.Text))
		}
	})
	if err := d.OpenItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	d.PushAudio("a", []byte{0, 0})
	d.writer.Wait()
	if !d.Claim(0, "a", []byte{0, 0}) {
		t.Fatal("not claimed")
	}
	d.FlushItem(&protocol.AudioFlush{ItemID: "a"})
	d.Finish()
	d.writer.Wait()
	if len(written) != 1 {
		t.Fatal("the flush was written during the claim")
	}
	d.Release(0, "a", 2)
	d.Wait()
	if len(written) != 2 || !strings.Contains(written[1], "audio.flush") {
		t.Errorf("written: %q", written)
	}
}

// TestLostClient: after Lose the queue drops its messages and later ones, and Wait returns.
func TestLostClient(t *testing.T) {
	var d *Queue
	writes := 0
	d = newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800}, func(int) {
		for _, ok := d.Pop(0); ok; _, ok = d.Pop(0) {
			writes++
			d.Lose()
		}
	})
	if err := d.OpenItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	d.PushAudio("a", []byte{0, 0})
	d.writer.Wait()
	d.PushAudio("a", []byte{0, 0})
	d.PushMessage(&protocol.Pong{})
	d.Finish(&protocol.SessionEnded{})
	d.Wait()
	if writes != 1 {
		t.Errorf("%d writes to a disconnected client", writes)
	}
}
