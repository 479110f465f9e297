package audio_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

func TestDurationAndBytes(t *testing.T) {
	days := 40 // long enough to overflow a product of nanoseconds
	if strconv.IntSize == 32 {
		days = 1
	}
	for _, c := range []struct {
		rate, bytes int
		d           time.Duration
		ms          int64
	}{
		{16000, 640, 20 * time.Millisecond, 20},
		{24000, 960, 20 * time.Millisecond, 20},
		{44100, 1764, 20 * time.Millisecond, 20},
		{44100, 2, 22675 * time.Nanosecond, 0},
		{8000, 0, 0, 0},
		{192000, 384000 * 3600 * days, time.Duration(days) * time.Hour, int64(days) * 3600 * 1000},
	} {
		if got := audio.Duration(c.rate, c.bytes); got != c.d {
			t.Errorf("Duration(%d, %d) = %v, want %v", c.rate, c.bytes, got, c.d)
		}
		if got := audio.MS(c.rate, c.bytes); got != c.ms {
			t.Errorf("MS(%d, %d) = %d, want %d", c.rate, c.bytes, got, c.ms)
		}
		if c.d%time.Millisecond == 0 {
			if got := audio.Bytes(c.rate, c.d); got != c.bytes {
				t.Errorf("Bytes(%d, %v) = %d, want %d", c.rate, c.d, got, c.bytes)
			}
		}
	}
	if got := audio.Bytes(11025, 10*time.Millisecond); got != 220 {
		t.Errorf("10 ms at 11025 Hz are %d bytes, want the 110 whole samples", got)
	}
	if got := audio.Duration(16000, 641); got != 20*time.Millisecond {
		t.Errorf("half a sample counts: %v", got)
	}
	for _, rate := range []int{0, -1} {
		if audio.Duration(rate, 100) != 0 || audio.Bytes(rate, time.Second) != 0 || audio.MS(rate, 100) != 0 {
			t.Errorf("a rate of %d Hz gives something", rate)
		}
	}
	if audio.Duration(8000, -2) != 0 || audio.Bytes(8000, -time.Second) != 0 || audio.MS(8000, -2) != 0 {
		t.Error("a negative amount gives something")
	}
}

func TestLevel(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.01 }
	rms, peak := audio.Level(testutil.Tone(16000, 1000, -20, time.Second))
	if !near(rms, -23.01) || !near(peak, -20) {
		t.Errorf("a sine of -20 dBFS has rms %.2f and peak %.2f", rms, peak)
	}
	if rms, _ := audio.Level(testutil.Noise(16000, -30, 10*time.Second, 1)); math.Abs(rms+30) > 0.1 {
		t.Errorf("noise of -30 dBFS has rms %.2f", rms)
	}
	lowest := []byte{0x00, 0x80, 0x00, 0x80}
	if rms, peak := audio.Level(lowest); !near(rms, 0) || !near(peak, 0) {
		t.Errorf("the lowest sample gives %v and %v, want 0 dBFS", rms, peak)
	}
	for _, pcm := range [][]byte{nil, {7}, make([]byte, 100)} {
		if rms, peak := audio.Level(pcm); rms != audio.MinLevel || peak != audio.MinLevel {
			t.Errorf("%d bytes of silence give %v and %v", len(pcm), rms, peak)
		}
	}
	pcm := testutil.Noise(16000, -30, 20*time.Millisecond, 1)
	if n := testing.AllocsPerRun(100, func() { audio.Level(pcm) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
