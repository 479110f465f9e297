package session

import (
	"testing"

	"voicegw/transport"
)

// TestUplinkClaim: audio can bypass the queue only while the queue is empty and no writer sends. During the claim no
// writer starts; release starts one.
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
		t.Error("audio would overtake a command, or two goroutines would send at once")
	}
	hold <- struct{}{}
	u.writer.Wait()
	if !u.claim() || u.claim() {
		t.Fatal("an idle queue can be claimed once, and not twice")
	}
	u.pushCommand(transport.Interrupt{}, nil)
	u.writer.Wait()
	if sent != 1 {
		t.Error("the writer sends during a claim")
	}
	u.release()
	hold <- struct{}{} // without a writer this test would hang
	u.writer.Wait()
	if sent != 2 {
		t.Error("the command queued during the claim is lost")
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
