package session

import (
	"testing"

	"voicegw/transport"
)

// TestUplinkClaim: audio may pass the queue only while nothing is queued before it
// and nobody else sends; no writer is started meanwhile, and one is after.
func TestUplinkClaim(t *testing.T) {
	hold, sent := make(chan struct{}), 0
	var u *uplink
	u = newUplink(1<<20, 4800, func() {
		for batch, ok := u.take(nil); ok; batch, ok = u.take(batch) {
			<-hold
			sent += len(batch)
		}
	})
	u.pushCommand(transport.Interrupt{}, nil)
	if u.claim() {
		t.Error("audio would overtake a command, or two would send at once")
	}
	hold <- struct{}{}
	u.writer.Wait()
	if !u.claim() || u.claim() {
		t.Fatal("an idle queue is claimed once")
	}
	u.pushCommand(transport.Interrupt{}, nil)
	u.writer.Wait()
	if sent != 1 {
		t.Error("the writer sends while somebody else does")
	}
	u.release()
	hold <- struct{}{} // or this test hangs: nobody would have started the writer
	u.writer.Wait()
	if sent != 2 {
		t.Error("what was queued meanwhile is gone")
	}
	u.close()
	if u.claim() {
		t.Error("a closed queue was claimed")
	}
	u.pushCommand(transport.Interrupt{}, nil)
	u.wait()
	if sent != 2 {
		t.Error("a closed queue sends")
	}
}
