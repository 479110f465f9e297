package openai

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"voicegw/sim/wire"
)

// BenchmarkAppend measures 100 ms of a client's audio: JSON, base64 and the detector.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range []string{"silence", "noise"} {
		b.Run(kind, func(b *testing.B) {
			m, _ := findModel("gpt-realtime")
			c := &conn{stats: &wire.Stats{}, model: m, sess: newSession("s", "gpt-realtime", m, false, time.Now().Add(time.Hour))}
			c.in.configure(nil, c.sess)
			pcm := make([]byte, 4800)
			if kind == "noise" { // steady and quiet: no speech, but work for the detector
				rnd := rand.New(rand.NewPCG(1, 2))
				for i := range pcm {
					if i%2 == 0 {
						pcm[i] = byte(rnd.IntN(40))
					}
				}
			}
			frame := []byte(fmt.Sprintf(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(pcm)))
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			work := make([]byte, len(frame))
			for b.Loop() {
				copy(work, frame) // the event overwrites it
				c.Handle(work)
			}
		})
	}
}
