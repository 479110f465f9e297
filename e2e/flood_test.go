package e2e

import (
	"sync"
	"testing"

	"voicegw/protocol"
)

// TestFloodIsolation: while two clients flood the gateway with frames of each kind, every ping of a third one is
// answered; every flood ends with 4029, or is cut off if its sender does not read.
func TestFloodIsolation(t *testing.T) {
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			st := newStack(t, provider, setting{})
			victim := st.start(t, 16000)
			const pings = 15
			var asked float64
			for _, f := range floods() {
				var flooders sync.WaitGroup
				for range 2 {
					flooders.Go(func() {
						code, err := f.run(st.url, nil)
						if err != nil || (code != protocol.CloseLimit && !f.deaf) {
							t.Errorf("%s ended with %d, %v", f.name, code, err)
						}
					})
				}
				for range pings { // within the third client's own budget
					asked++
					victim.say(&protocol.Ping{T: asked})
					if pong := waitFor[*protocol.Pong](victim); pong.T != asked {
						t.Fatalf("%s: ping %g was answered with %g", f.name, asked, pong.T)
					}
				}
				flooders.Wait()
			}
		})
	}
}
