package session

import (
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestDownlinkClaim: audio may pass the queue only for the item that is open, while
// nothing is queued before it and nobody else writes. Anything else would let a
// flushed item through, or overtake a message.
func TestDownlinkClaim(t *testing.T) {
	open := func() *downlink {
		d := newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: 4800}, nil)
		if err := d.openItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
			t.Fatal(err)
		}
		if d.claim(0, "a", []byte{0, 0}) {
			t.Error("audio would overtake its audio.start")
		}
		d.pushAudio("a", []byte{0, 0})
		e, _ := d.pop(0) // audio.start and the first frame have been written
		d.written(0, e)
		d.pop(0)
		return d
	}
	for _, tc := range []struct {
		name   string
		before func(d *downlink)
		item   string
		want   bool
	}{
		{"open, nothing queued", func(*downlink) {}, "a", true},
		{"another item", func(*downlink) {}, "b", false},
		{"flushed", func(d *downlink) { d.flushItem(&protocol.AudioFlush{ItemID: "a"}); d.pop(0); d.pop(0) }, "a", false},
		{"ended", func(d *downlink) { d.endItem(&protocol.AudioEnd{ItemID: "a"}); d.pop(0); d.pop(0) }, "a", false},
		{"a message waits", func(d *downlink) { d.pushMessage(&protocol.Pong{}) }, "a", false},
		{"a frame waits", func(d *downlink) { d.pushAudio("a", []byte{0, 0}) }, "a", false},
		{"somebody writes", func(d *downlink) { d.pushMessage(&protocol.Pong{}); d.pop(0) }, "a", false},
		{"claimed", func(d *downlink) { d.claim(0, "a", []byte{0, 0}) }, "a", false},
		{"finished", func(d *downlink) { d.finish() }, "a", false},
		{"lost", func(d *downlink) { d.lose() }, "a", false},
	} {
		d := open()
		tc.before(d)
		if ok := d.claim(0, tc.item, []byte{0, 0}); ok != tc.want {
			t.Errorf("%s: claimed=%t, want %t", tc.name, ok, tc.want)
		}
	}
}

// TestDownlinkWriterWaitsForAClaim: while the reading goroutine writes, no writer is
// started; afterwards one is, for what has been queued meanwhile, and wait waits for it.
func TestDownlinkWriterWaitsForAClaim(t *testing.T) {
	var written []string
	var d *downlink
	d = newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: 4800}, func(int) {
		for e, ok := d.pop(0); ok; e, ok = d.pop(0) {
			written = append(written, string(e.text))
		}
	})
	if err := d.openItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	d.pushAudio("a", []byte{0, 0})
	d.writer.Wait()
	if !d.claim(0, "a", []byte{0, 0}) {
		t.Fatal("not claimed")
	}
	d.flushItem(&protocol.AudioFlush{ItemID: "a"})
	d.finish()
	d.writer.Wait()
	if len(written) != 1 {
		t.Fatal("the flush was written while a frame of the item was being written")
	}
	d.release(0, "a", 2)
	d.wait()
	if len(written) != 2 || !strings.Contains(written[1], "audio.flush") {
		t.Errorf("written: %q", written)
	}
}

// TestLostClientIsWaitedForNoLonger: a writer that fails drops what is queued and what
// comes, and whoever waits goes on.
func TestLostClientIsWaitedForNoLonger(t *testing.T) {
	var d *downlink
	writes := 0
	d = newDownlink(downBounds{rate: 24000, audio: 1 << 20, all: 1 << 20, frame: 4800}, func(int) {
		for _, ok := d.pop(0); ok; _, ok = d.pop(0) {
			writes++
			d.lose()
		}
	})
	if err := d.openItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	d.pushAudio("a", []byte{0, 0})
	d.writer.Wait()
	d.pushAudio("a", []byte{0, 0})
	d.pushMessage(&protocol.Pong{})
	d.finish(&protocol.SessionEnded{})
	d.wait()
	if writes != 1 {
		t.Errorf("%d writes to a client that is gone", writes)
	}
}
