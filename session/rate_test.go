package session

import (
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// TestStatedRates: audio is played at the rate that the model states, also if the rate changes within an item.
func TestStatedRates(t *testing.T) {
	for name, rates := range map[string][]int{
		"the model's own": {0, 0}, "the client's": {24000, 24000}, "16 kHz": {16000, 16000},
		"changing": {16000, 0, 48000, 8000, 8000, 22050, 24000}, "to the end": {0, 16000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c, model := st.started()
				model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
				for _, rate := range rates {
					hz := rate
					if hz == 0 {
						hz = 24000
					}
					model.Emit(&transport.AudioOut{Item: "a1", PCM: testutil.Tone(hz, 440, -6, time.Second), Rate: rate})
				}
				model.Emit(transport.AudioDone{Item: "a1"})
				synctest.Wait()
				want := float64(1000 * len(rates))
				if ms := c.last(t, "audio.end")["audio_ms"].(float64); ms < want-10 || ms > want+10 {
					t.Errorf("%d seconds became %v ms", len(rates), ms)
				}
				if n := c.count("error"); n != 0 {
					t.Errorf("%d errors: %q", n, c.log())
				}
			})
		})
	}
}
