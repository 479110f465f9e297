package downlink

import (
	"testing"

	"voicegw/protocol"
)

// TestProbesFreeMemory: a client without reports gets probes, and each answer frees the audio sent before it, but no
// later audio and none that cannot have been played yet. A client that resumes gets the rest.
func TestProbesFreeMemory(t *testing.T) {
	const frame = 4800
	d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: frame, Away: 1 << 20}, nil)
	budget := NewBudget()
	d.Keep(budget, 1<<20, MaxKept)
	if err := d.OpenItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	sent, probes := int64(0), uint32(0)
	send := func(n int) (probe uint32) {
		for range n {
			d.PushAudio("a", make([]byte, frame))
			e, ok := d.Pop(0)
			if !ok {
				t.Fatal("nothing to write")
			}
			sent += frame
			if n := d.Written(0, e); n > 0 {
				probe = n
				probes++
			}
			d.Pop(0)
		}
		return probe
	}
	none := func(string) bool { return false }
	all := func(string) int64 { return 1 << 50 }
	probe := send(7)
	if probe == 0 || send(3) != 0 {
		t.Fatal("one probe is due after half a second, and no other before its answer")
	}
	d.Proven(0, probe+1, all)
	d.Proven(1, probe, all)
	d.Proven(0, probe, func(string) int64 { return 0 })
	if int64(d.held.chunks)*chunkSize < sent {
		t.Error("audio was freed without an answer, or before it was played")
	}
	for sent < 1<<20 {
		if probe := send(1); probe > 0 {
			d.Proven(0, probe, all)
		}
		if sent > 1<<17 && d.held.chunks > probeChunks+2 {
			t.Fatalf("after %d bytes, %d chunks are held", sent, d.held.chunks)
		}
	}
	if probes > uint32(sent/(2*chunkSize)) {
		t.Errorf("%d probes for %d bytes", probes, sent)
	}
	it := d.held.item("a")
	has := it.base/48 + 10
	d.Detach()
	back := d.Resume(1, &protocol.ResumeAudio{ItemID: "a", ReceivedMS: has}, 0, none)
	if len(back.Again) != 1 || len(back.Gone) != 0 || back.Snapshot {
		t.Fatalf("replayed: %+v", back)
	}
	d.Attach(1)
	again := int64(0)
	for e, ok := d.Pop(1); ok; e, ok = d.Pop(1) {
		if e.Frame != nil {
			again += int64(len(e.Frame.PCM))
		}
	}
	if again != sent-has*48 {
		t.Errorf("%d bytes were replayed, want %d", again, sent-has*48)
	}
	d.Lose()
	if kept := budget.keptChunks.Load(); kept != 0 {
		t.Errorf("%d chunks are still counted", kept)
	}
}

// TestReportingClientsAreNotProbed: the reports of a client that acknowledges on its own are enough; everything not
// acknowledged is held.
func TestReportingClientsAreNotProbed(t *testing.T) {
	d := newDownlink(Bounds{Rate: 24000, Audio: 1 << 20, All: 1 << 20, Frame: 4800, Away: 1 << 20}, nil)
	d.Keep(NewBudget(), 1<<20, MaxKept)
	if err := d.OpenItem(&protocol.AudioStart{ItemID: "a"}); err != nil {
		t.Fatal(err)
	}
	d.Acknowledged(0) // a ping without a seq acknowledges nothing
	for i := range 40 {
		d.PushAudio("a", make([]byte, 4800))
		e, _ := d.Pop(0)
		if i == 2 {
			d.Acknowledged(1)
		}
		if d.Written(0, e) != 0 {
			t.Fatal("the client is probed")
		}
		d.Pop(0)
	}
	d.Lose()
}
