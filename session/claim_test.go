package session

import (
	"testing"

	"voicegw/session/wsclient"
	"voicegw/transport"
)

// TestDownlinkClaim: audio may pass the queue only for the item that is open, while
// nothing is queued before it and nobody else writes. Anything else would let a
// flushed item through, or overtake a message.
func TestDownlinkClaim(t *testing.T) {
	open := func() *downlink {
		d := newDownlink(1 << 20)
		if _, err := d.openItem(&wsclient.AudioStart{ItemID: "a"}); err != nil {
			t.Fatal(err)
		}
		d.pop() // audio.start has been written
		d.release()
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
		{"flushed", func(d *downlink) { d.flushItem(&wsclient.AudioFlush{ItemID: "a"}); d.pop(); d.release() }, "a", false},
		{"ended", func(d *downlink) { d.endItem(&wsclient.AudioEnd{ItemID: "a"}); d.pop(); d.release() }, "a", false},
		{"a message waits", func(d *downlink) { d.pushMessage(&wsclient.Pong{}) }, "a", false},
		{"a frame waits", func(d *downlink) { d.pushAudio("a", []byte{0, 0}) }, "a", false},
		{"somebody writes", func(d *downlink) { d.pushMessage(&wsclient.Pong{}); d.pop() }, "a", false},
		{"claimed", func(d *downlink) { d.claim("a", 2) }, "a", false},
		{"finished", func(d *downlink) { d.finish() }, "a", false},
	} {
		d := open()
		tc.before(d)
		if _, ok := d.claim(tc.item, 2); ok != tc.want {
			t.Errorf("%s: claimed=%t, want %t", tc.name, ok, tc.want)
		}
	}
}

// TestDownlinkWriterWaitsForAClaim: while the reading goroutine writes, the writer
// gets nothing; afterwards it is woken for what has been queued meanwhile.
func TestDownlinkWriterWaitsForAClaim(t *testing.T) {
	d := newDownlink(1 << 20)
	d.openItem(&wsclient.AudioStart{ItemID: "a"})
	d.pop()
	d.release()
	if first, ok := d.claim("a", 2); !ok || !first {
		t.Fatalf("claimed=%t, first=%t", ok, first)
	}
	d.flushItem(&wsclient.AudioFlush{ItemID: "a"})
	d.finish()
	if _, ok, done := d.pop(); ok || done {
		t.Fatal("the writer got the flush while a frame of the item was being written")
	}
	<-d.ready // what finish signalled
	d.release()
	<-d.ready
	if e, ok, _ := d.pop(); !ok || e.text == nil {
		t.Error("the flush is gone")
	}
}

// TestUplinkClaim: audio may pass the queue only while nothing is queued before it
// and nobody else sends; the writer takes nothing meanwhile, and is woken after.
func TestUplinkClaim(t *testing.T) {
	u := newUplink(1 << 20)
	u.pushCommand(transport.Interrupt{})
	if u.claim() {
		t.Error("audio would overtake a command")
	}
	batch, _ := u.take(nil)
	if len(batch) != 1 || u.claim() {
		t.Error("two would send at once")
	}
	u.release()
	<-u.ready
	if !u.claim() || u.claim() {
		t.Fatal("an idle queue is claimed once")
	}
	u.pushCommand(transport.Interrupt{})
	<-u.ready
	if batch, _ = u.take(batch); len(batch) != 0 {
		t.Error("the writer sends while somebody else does")
	}
	u.release()
	<-u.ready // or this test hangs: nobody would have woken the writer
	if batch, _ = u.take(batch); len(batch) != 1 {
		t.Error("what was queued meanwhile is gone")
	}
	u.release()
	u.close()
	if u.claim() {
		t.Error("a closed queue was claimed")
	}
}
