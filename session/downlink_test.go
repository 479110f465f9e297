package session

import (
	"fmt"
	"strings"
	"testing"

	"voicegw/session/wsclient"
)

// TestDroppedAudioIsNotPromised: an audio.end that waits behind audio names what was sent
// once some of that is dropped, whether by a flush or by the session's end. It keeps its
// seq, and the end of another item its length.
func TestDroppedAudioIsNotPromised(t *testing.T) {
	const frame = 4800 // 100 ms at 24 kHz
	for name, drop := range map[string]func(d *downlink) error{
		"by a flush": func(d *downlink) error {
			_, err := d.flushItem(&wsclient.AudioFlush{ItemID: "b", Reason: "user_speech"})
			return err
		},
		"by the end": func(d *downlink) error { return d.finish(&wsclient.SessionEnded{Reason: "client_ended"}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDownlink(downBounds{audio: 1 << 20, all: 1 << 20, frame: frame}, nil)
			var got []string
			pop := func() {
				e, ok := d.pop()
				switch {
				case !ok:
				case e.frame != nil:
					got = append(got, "frame of "+e.item)
				default:
					got = append(got, string(e.text))
				}
			}
			open := func(item string, frames int) {
				if _, err := d.openItem(&wsclient.AudioStart{ItemID: item}); err != nil {
					t.Fatal(err)
				}
				for range frames {
					d.pushAudio(item, make([]byte, frame))
				}
				if _, err := d.endItem(&wsclient.AudioEnd{ItemID: item, AudioMS: int64(100 * frames)}); err != nil {
					t.Fatal(err)
				}
			}
			open("a", 1)
			for range 3 {
				pop()
			}
			open("b", 3)
			pop()
			pop() // one frame of three
			if err := drop(d); err != nil {
				t.Fatal(err)
			}
			for d.head < len(d.entries) {
				pop()
			}
			all := strings.Join(got, "\n")
			if n := strings.Count(all, "frame of b"); n != 1 {
				t.Errorf("%d frames of b", n)
			}
			for i, want := range []string{`"seq":2`, `"audio_ms":100`, `"seq":4`, `"audio_ms":100`, `"seq":5`} {
				at := strings.Index(all, want)
				if at < 0 {
					t.Fatal(fmt.Sprintf("%d: %s is missing in\n", i, want), strings.Join(got, "\n"))
				}
				all = all[at+len(want):]
			}
			if d.audio != 0 || d.bytes != 0 {
				t.Errorf("%d bytes are said to wait, %d of them audio", d.bytes, d.audio)
			}
		})
	}
}
