package talk

import (
	"math/rand/v2"
	"testing"

	"voicegw/audio"
)

func TestVoiced(t *testing.T) {
	noisy := tone(16000, 300, 500, 300)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(noisy.PCM); i += 2 {
		v := int16(noisy.PCM[i]) | int16(noisy.PCM[i+1])<<8
		v += int16(r.IntN(200) - 100) // about -55 dBFS
		noisy.PCM[i], noisy.PCM[i+1] = byte(v), byte(uint16(v)>>8)
	}
	tests := []struct {
		name     string
		clip     audio.Clip
		from, to int64 // ms
	}{
		{"speech between silence", tone(16000, 200, 600, 300), 200, 800},
		{"a pause in it", tone(8000, 100, 100, 500, 100, 50), 100, 800},
		{"in noise", noisy, 300, 800},
		{"nothing but speech", tone(24000, 0, 400), 0, 400},
		{"nothing but silence", tone(16000, 250), 0, 250},
		{"shorter than a frame", audio.Clip{Rate: 16000, PCM: make([]byte, 10)}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, to := voiced(tt.clip.PCM, tt.clip.Rate)
			if got := audio.MS(tt.clip.Rate, from); got < tt.from-10 || got > tt.from+10 {
				t.Errorf("begins at %d ms, want %d", got, tt.from)
			}
			if got := audio.MS(tt.clip.Rate, to); got < tt.to-10 || got > tt.to+10 {
				t.Errorf("ends at %d ms, want %d", got, tt.to)
			}
		})
	}
}
