package audiotest_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"voicegw/audio/audiotest"
)

func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if math.Abs(got-want) > slack {
		t.Errorf("%s is %.3f, want %.3f", what, got, want)
	}
}

// The measures must be right on signals whose answer is known.
func TestMeasures(t *testing.T) {
	const rate = 16000
	tone := audiotest.Tone(rate, 997, -20, time.Second)
	near(t, "the level of a tone", audiotest.ToneLevel(tone, rate, 997), -20, 0.01)
	near(t, "the level of all of it", audiotest.Level(tone), -20, 0.01)
	// Rounding to 16 bits leaves 1/12 of a step squared.
	near(t, "the SNR of a rounded tone", audiotest.SNR(tone, rate, 997), 98.1-20, 0.5)

	noise := audiotest.Noise(rate, -50, time.Second, 1)
	near(t, "the SNR in noise", audiotest.SNR(audiotest.Mix(tone, noise), rate, 997), 50-23.01, 0.3)
	near(t, "the tone in noise", audiotest.ToneLevel(audiotest.Mix(tone, noise), rate, 997), -20, 0.05)
	near(t, "noise as a tone", audiotest.Level(noise), -50+3.01, 0.2)

	other := audiotest.Tone(rate, 3000, -60, time.Second)
	near(t, "the SNR with an alias", audiotest.SNR(audiotest.Mix(tone, other), rate, 997), 40, 0.1)
}

func TestSignals(t *testing.T) {
	for _, rate := range []int{8000, 11025, 44100} {
		for _, d := range []time.Duration{0, time.Millisecond, 130 * time.Millisecond, 2 * time.Second} {
			want := 2 * int(int64(rate)*int64(d)/int64(time.Second))
			for name, pcm := range map[string][]byte{
				"Silence": audiotest.Silence(rate, d), "Tone": audiotest.Tone(rate, 440, -6, d),
				"Noise": audiotest.Noise(rate, -30, d, 1), "SpeechLike": audiotest.SpeechLike(rate, d, 1),
			} {
				if len(pcm) != want {
					t.Errorf("%s: %v at %d Hz are %d bytes, want %d", name, d, rate, len(pcm), want)
				}
			}
		}
	}
	a, b := audiotest.SpeechLike(16000, time.Second, 1), audiotest.SpeechLike(16000, time.Second, 1)
	if !bytes.Equal(a, b) {
		t.Error("the same seed gives different speech")
	}
	if bytes.Equal(a, audiotest.SpeechLike(16000, time.Second, 2)) {
		t.Error("another seed gives the same speech")
	}
	near(t, "the level of speech", audiotest.Level(a)-3.01, -21, 2.5)
	loud := audiotest.Tone(8000, 440, 0, 10*time.Millisecond)
	if sum := audiotest.Mix(loud, loud); audiotest.Level(sum) > 3.01 {
		t.Error("a mix beyond full scale wraps around")
	}
}
