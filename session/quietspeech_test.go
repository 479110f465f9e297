package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// quieter returns pcm with its overall level at dBFS.
func quieter(pcm []byte, dBFS float64) []byte {
	level, _ := testutil.Level(pcm)
	factor := math.Pow(10, (dBFS-level)/20)
	out := make([]byte, 0, len(pcm))
	for at := 0; at < len(pcm); at += audio.BytesPerSample {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[at:])))
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(math.Round(v*factor))))
	}
	return out
}

// TestQuietSpeechSurvivesALoss: the connection breaks while the user speaks quietly, down to the threshold of the
// detector. The next model hears the speech from its onset.
func TestQuietSpeechSurvivesALoss(t *testing.T) {
	for _, level := range []float64{-20, -38, -41, -45, audio.FaintestSpeech + 6} {
		for name, deaf := range map[string]bool{"the model reports speech": false, "the gateway's ear": true} {
			t.Run(fmt.Sprintf("%s at %.0f dBFS", name, level), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					caps := remembering
					if deaf {
						caps = with(announcing, func(c *transport.Capabilities) { c.History = transport.HistoryItems })
					}
					st := newStage(t, caps, nil)
					c, model := st.started()
					// The first consonant is 10 dB fainter than the vowels.
					onset := quieter(testutil.Noise(16000, -20, 100*time.Millisecond, 3), level-10)
					speech := slices.Concat(onset, quieter(testutil.SpeechLike(16000, time.Second, 7), level))
					c.says(make([]byte, 32000))
					c.says(speech)
					if !deaf {
						model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 1000})
						synctest.Wait()
					}
					c.expect(t, "speech.started")
					model.FailRecv(broken())
					next := st.fake.Accept(t)
					synctest.Wait()
					// The first samples of the noise may be too faint.
					if _, got := heardOf(next); !bytes.Contains(got, speech[640:]) {
						t.Errorf("the next connection got %d bytes, want %d", len(got), len(speech))
					}
				})
			})
		}
	}
}
