package audio_test

import (
	"strconv"
	"testing"
	"time"

	"voicegw/audio"
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
			t.Errorf("a rate of %d Hz gives a result", rate)
		}
	}
	if audio.Duration(8000, -2) != 0 || audio.Bytes(8000, -time.Second) != 0 || audio.MS(8000, -2) != 0 {
		t.Error("a negative amount gives a result")
	}
}
