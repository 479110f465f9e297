package testutil_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if math.Abs(got-want) > slack {
		t.Errorf("%s is %.3f, want %.3f", what, got, want)
	}
}

// rms is the level of pcm in dB relative to the rms of a full-scale sine.
func rms(pcm []byte) float64 {
	square := 0.0
	for i := 0; i < len(pcm); i += 2 {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[i:])))
		square += v * v
	}
	return 10 * math.Log10(4*square/float64(len(pcm))/(32767*32767))
}

func TestSignals(t *testing.T) {
	for _, rate := range []int{8000, 11025, 44100} {
		for _, d := range []time.Duration{0, time.Millisecond, 130 * time.Millisecond, 2 * time.Second} {
			want := 2 * int(int64(rate)*int64(d)/int64(time.Second))
			for name, pcm := range map[string][]byte{
				"Silence": testutil.Silence(rate, d), "Tone": testutil.Tone(rate, 440, -6, d),
				"Noise": testutil.Noise(rate, -30, d, 1), "SpeechLike": testutil.SpeechLike(rate, d, 1),
			} {
				if len(pcm) != want {
					t.Errorf("%s: %v at %d Hz are %d bytes, want %d", name, d, rate, len(pcm), want)
				}
			}
		}
	}
	a, b := testutil.SpeechLike(16000, time.Second, 1), testutil.SpeechLike(16000, time.Second, 1)
	if !bytes.Equal(a, b) {
		t.Error("the same seed gives different speech")
	}
	if bytes.Equal(a, testutil.SpeechLike(16000, time.Second, 2)) {
		t.Error("another seed gives the same speech")
	}
	near(t, "the level of speech", rms(a)-3.01, -21, 2.5)
	loud := testutil.Tone(8000, 440, 0, 10*time.Millisecond)
	if sum := testutil.Mix(loud, loud); rms(sum) > 3.01 {
		t.Error("a mix beyond full scale wraps around")
	}
}

func TestLevel(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.01 }
	rms, peak := testutil.Level(testutil.Tone(16000, 1000, -20, time.Second))
	if !near(rms, -23.01) || !near(peak, -20) {
		t.Errorf("a sine of -20 dBFS has rms %.2f and peak %.2f", rms, peak)
	}
	if rms, _ := testutil.Level(testutil.Noise(16000, -30, 10*time.Second, 1)); math.Abs(rms+30) > 0.1 {
		t.Errorf("noise of -30 dBFS has rms %.2f", rms)
	}
	lowest := []byte{0x00, 0x80, 0x00, 0x80}
	if rms, peak := testutil.Level(lowest); !near(rms, 0) || !near(peak, 0) {
		t.Errorf("the lowest sample gives %v and %v, want 0 dBFS", rms, peak)
	}
	for _, pcm := range [][]byte{nil, {7}, make([]byte, 100)} {
		if rms, peak := testutil.Level(pcm); rms != -120 || peak != -120 {
			t.Errorf("%d bytes of silence give %v and %v", len(pcm), rms, peak)
		}
	}
}
