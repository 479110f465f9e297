package gemini

import (
	"testing"
	"testing/synctest"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// TestAFrameMeetsAnEarlierFault: a fault is injected and then a frame arrives, while the simulator is busy writing.
// Whichever of the two the loop takes first, the fault applies before the frame.
func TestAFrameMeetsAnEarlierFault(t *testing.T) {
	for range 32 { // without an order the loop takes either, so one round may pass by luck
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, wire.Options{Group: &wire.Group{}})
			c := b.dial(betaPath+"?key=test", nil)
			c.send(`{"setup":{"model":"` + model31 + `"}}`)
			synctest.Wait() // setupComplete waits for the client, which does not read yet
			if err := b.h.opts.Group.Inject("pipe", scenario.Fault{Kind: scenario.Close, Code: 4000}); err != nil {
				t.Fatal(err)
			}
			c.send(`this frame would be answered with 1007`)
			synctest.Wait()
			if got := c.closed(); got.Code != 4000 {
				t.Errorf("closed %d %s: the frame was answered before the fault", got.Code, got.Reason)
			}
		})
	}
}
