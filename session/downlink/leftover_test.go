package downlink

import (
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestUnwrittenStart: a connection is lost before anything of its beginning was written. The next one gets only its own
// beginning, because the token of the other one is invalid.
func TestUnwrittenStart(t *testing.T) {
	d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800}, nil)
	for gen, token := range []string{"first", "second", "third"} {
		if gen > 0 {
			d.Detach()
			d.Resume(0, nil, 0, allHeard)
		}
		if err := d.Lead(&protocol.SessionStarted{ResumeToken: token}); err != nil {
			t.Fatal(err)
		}
		d.Attach(gen + 1)
	}
	var got []string
	for {
		e, ok := d.Pop(3)
		if !ok {
			break
		}
		got = append(got, string(e.Text))
	}
	if len(got) != 1 || !strings.Contains(got[0], "third") {
		t.Errorf("the third connection got %q", got)
	}
	if d.waiting != 0 || d.words != 0 || d.bytes != 0 {
		t.Errorf("%d messages, %d and %d bytes are counted as waiting", d.waiting, d.words, d.bytes)
	}
}
