package audio_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// clientPairs are the conversions of a session: microphones to the providers'
// 16 and 24 kHz, their 24 kHz to loudspeakers.
var clientPairs = [][2]int{
	{8000, 16000}, {8000, 24000}, {16000, 24000}, {24000, 16000}, {44100, 16000}, {44100, 24000}, {48000, 16000}, {48000, 24000},
	{24000, 8000}, {24000, 48000},
}

// otherPairs must work as well: those of recordings and of providers.
var otherPairs = [][2]int{
	{11025, 8000}, {11025, 16000}, {11025, 24000}, {11025, 48000}, {22050, 8000}, {22050, 16000}, {22050, 24000}, {22050, 48000},
	{32000, 8000}, {32000, 16000}, {32000, 24000}, {32000, 48000}, {44100, 8000}, {44100, 48000}, {48000, 8000}, {16000, 8000},
	{16000, 48000}, {24000, 44100}, {192000, 8000}, {8000, 192000}, {96000, 44100},
}

func resampler(tb testing.TB, in, out int) *audio.Resampler {
	tb.Helper()
	r, err := audio.NewResampler(in, out)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// convert resamples pcm in blocks with the sizes, in samples, of next.
func convert(tb testing.TB, in, out int, pcm []byte, next func() int) []byte {
	tb.Helper()
	r := resampler(tb, in, out)
	var got []byte
	for rest := pcm; len(rest) > 0; {
		n := min(next()*audio.BytesPerSample, len(rest))
		before := len(got)
		got = r.Process(got, rest[:n])
		if grew := len(got) - before; grew > r.MaxOut(n) {
			tb.Fatalf("%d bytes became %d, MaxOut says at most %d", n, grew, r.MaxOut(n))
		}
		rest = rest[n:]
	}
	before := len(got)
	if got = r.Flush(got); len(got)-before > r.MaxOut(0) {
		tb.Fatalf("flush gave %d bytes, MaxOut says at most %d", len(got)-before, r.MaxOut(0))
	}
	return got
}

// blocks20 cuts into frames of 20 ms.
func blocks20(rate int) func() int { return func() int { return rate / 50 } }

// steady is a signal without its first and last tenth of a second, in which a tone that begins at full level has other
// frequencies too.
func steady(rate int, pcm []byte) []byte {
	edge := rate / 10 * audio.BytesPerSample
	return pcm[edge : len(pcm)-edge]
}

func TestResampleQuality(t *testing.T) {
	for _, pair := range append(append([][2]int{}, clientPairs...), otherPairs...) {
		t.Run(fmt.Sprintf("%d-%d", pair[0], pair[1]), func(t *testing.T) {
			t.Parallel()
			in, out := pair[0], pair[1]
			lower := float64(min(in, out))
			for _, hz := range []float64{300.7, 1000, 0.42 * lower} {
				got := convert(t, in, out, testutil.Tone(in, hz, -1, 400*time.Millisecond), blocks20(in))
				snr, level := snrOf(steady(out, got), out, hz), toneLevelOf(steady(out, got), out, hz)
				t.Logf("%7.1f Hz: SNR %.1f dB, gain %+.4f dB", hz, snr, level+1)
				if snr < 90 {
					t.Errorf("%.1f Hz passes with an SNR of %.1f dB, want 90", hz, snr)
				}
				if gain := level + 1; gain < -0.01 || gain > 0.01 {
					t.Errorf("%.1f Hz passes with a gain of %.4f dB", hz, gain)
				}
			}
			// Above the output's Nyquist frequency nothing may come through.
			for _, part := range []float64{0.5005, 0.53, 0.6, 0.75, 0.99, 1.3} {
				hz := part * lower
				if hz >= 0.499*float64(in) {
					continue
				}
				got := convert(t, in, out, testutil.Tone(in, hz, -1, 400*time.Millisecond), blocks20(in))
				left := levelOf(steady(out, got)) + 1
				t.Logf("%7.1f Hz: alias %.1f dB", hz, left)
				if left > -80 {
					t.Errorf("%.1f Hz aliases at %.1f dB, want -80", hz, left)
				}
			}
		})
	}
}

// TestResampleImages: images are the frequencies that upsampling adds above the input's Nyquist frequency. They count as
// noise in the SNR; the worst place for them is the edge of the band.
func TestResampleImages(t *testing.T) {
	for _, pair := range clientPairs {
		in, out := pair[0], pair[1]
		if in > out {
			continue
		}
		for _, part := range []float64{0.44, 0.46, 0.48, 0.495} {
			hz := part * float64(in)
			got := convert(t, in, out, testutil.Tone(in, hz, -1, 400*time.Millisecond), blocks20(in))
			if snr := snrOf(steady(out, got), out, hz) - toneLevelOf(steady(out, got), out, hz); snr < 80 {
				t.Errorf("%d to %d: %.0f Hz leaves an image at -%.1f dB", in, out, hz, snr)
			}
		}
	}
}

func TestResampleIsIndependentOfCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, pair := range append(append([][2]int{{16000, 16000}}, clientPairs...), otherPairs...) {
		in, out := pair[0], pair[1]
		pcm := testutil.Noise(in, -12, 200*time.Millisecond, 3)
		want := convert(t, in, out, pcm, func() int { return len(pcm) })
		cuts := map[string]func() int{
			"20 ms":      blocks20(in),
			"one sample": func() int { return 1 },
			"random":     func() int { return rng.IntN(2 * in / 50) },
			"large":      func() int { return in/10 + rng.IntN(in/10) },
		}
		for name, next := range cuts {
			if got := convert(t, in, out, pcm, next); !bytes.Equal(got, want) {
				t.Errorf("%d to %d: cut into %s blocks the output differs", in, out, name)
			}
		}
		n := len(pcm) / audio.BytesPerSample
		if samples := (n*out + in - 1) / in; len(want) != samples*audio.BytesPerSample {
			t.Errorf("%d to %d: %d samples became %d, want %d", in, out, n, len(want)/audio.BytesPerSample, samples)
		}
	}
}

// TestResampleIsAligned: a tone keeps its phase: the output is not delayed, and block edges do not click.
func TestResampleIsAligned(t *testing.T) {
	for _, pair := range clientPairs {
		in, out := pair[0], pair[1]
		got := convert(t, in, out, testutil.Tone(in, 440, -6, time.Second), blocks20(in))
		want := testutil.Tone(out, 440, -6, time.Second)
		if len(got) != len(want) {
			t.Fatalf("%d to %d: %d bytes, want %d", in, out, len(got), len(want))
		}
		worst := 0
		for i := out / 100 * 2; i < len(got)-out/100*2; i += 2 {
			worst = max(worst, abs(sample(got, i)-sample(want, i)))
		}
		if worst > 2 {
			t.Errorf("%d to %d: a sample differs from the tone at the output rate by %d", in, out, worst)
		}
	}
}

func TestResampleFullScaleClipsWithoutWrapping(t *testing.T) {
	// A square wave overshoots behind a low-pass filter.
	pcm := make([]byte, 0, 16000)
	for i := range 8000 {
		v := int16(32767)
		if i/80%2 == 1 {
			v = -32768
		}
		pcm = append(pcm, byte(v), byte(uint16(v)>>8))
	}
	got := convert(t, 16000, 24000, pcm, blocks20(16000))
	for i := 240; i < len(got)-240; i += 2 {
		// 80 samples become 120: away from the edges the sign is that of
		// the input.
		if at := i / 2 % 120; at < 10 || at > 110 {
			continue
		}
		want := i/2/120%2 == 0
		if positive := sample(got, i) > 0; positive != want {
			t.Fatalf("sample %d is %d: it wrapped around", i/2, sample(got, i))
		}
	}
}

func TestResamplerResetAndFlushBeginAnew(t *testing.T) {
	pcm := testutil.Noise(44100, -12, 100*time.Millisecond, 5)
	r := resampler(t, 44100, 16000)
	want := r.Flush(r.Process(nil, pcm))
	if again := r.Flush(r.Process(nil, pcm)); !bytes.Equal(again, want) {
		t.Error("after Flush the same input gives other output")
	}
	r.Process(nil, pcm[:5002]) // ends between two output samples
	r.Reset()
	if again := r.Flush(r.Process(nil, pcm)); !bytes.Equal(again, want) {
		t.Error("after Reset the same input gives other output")
	}
	if out := r.Flush(nil); len(out) != 0 {
		t.Errorf("flushing an empty stream gave %d bytes", len(out))
	}
}

func TestResampleEqualRatesCopies(t *testing.T) {
	pcm := testutil.Noise(24000, -3, 100*time.Millisecond, 1)
	r := resampler(t, 24000, 24000)
	if got := r.Flush(r.Process([]byte("head"), pcm)); !bytes.Equal(got, append([]byte("head"), pcm...)) {
		t.Error("equal rates changed the audio")
	}
	if r.Latency() != 0 {
		t.Errorf("equal rates have a latency of %v", r.Latency())
	}
	if got := r.Process(nil, []byte{1, 2, 3}); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("half a sample passed: %v", got)
	}
}

func TestResamplerLatency(t *testing.T) {
	for _, pair := range append(append([][2]int{}, clientPairs...), otherPairs...) {
		in, out := pair[0], pair[1]
		r := resampler(t, in, out)
		n := in // one second
		got := len(r.Process(nil, make([]byte, n*audio.BytesPerSample)))
		behind := time.Second - audio.Duration(out, got)
		if late := behind - r.Latency(); late < -time.Second/time.Duration(out) || late > time.Second/time.Duration(out) {
			t.Errorf("%d to %d: the output is %v behind, Latency returns %v", in, out, behind, r.Latency())
		}
		if limit := 7 * time.Millisecond; r.Latency() > limit {
			t.Errorf("%d to %d: a latency of %v, want at most %v", in, out, r.Latency(), limit)
		}
	}
}

func TestNewResamplerRefuses(t *testing.T) {
	for _, pair := range [][2]int{{0, 16000}, {16000, 0}, {-8000, 16000}, {7999, 16000}, {16000, 192001}, {8000, 191999}, {1 << 30, 16000}} {
		if _, err := audio.NewResampler(pair[0], pair[1]); !errors.Is(err, audio.ErrRate) {
			t.Errorf("%d to %d: error %v, want ErrRate", pair[0], pair[1], err)
		}
	}
}

func TestResampleDoesNotAllocate(t *testing.T) {
	for _, pair := range clientPairs {
		r := resampler(t, pair[0], pair[1])
		block := testutil.Noise(pair[0], -20, 20*time.Millisecond, 1)
		dst := make([]byte, 0, r.MaxOut(len(block)))
		if n := testing.AllocsPerRun(100, func() { dst = r.Process(dst[:0], block) }); n != 0 {
			t.Errorf("%d to %d: %v allocations a block", pair[0], pair[1], n)
		}
	}
}

func BenchmarkResample(b *testing.B) {
	for _, pair := range clientPairs {
		b.Run(fmt.Sprintf("%d-%d", pair[0], pair[1]), func(b *testing.B) {
			r := resampler(b, pair[0], pair[1])
			block := testutil.Noise(pair[0], -20, 20*time.Millisecond, 1)
			dst := make([]byte, 0, r.MaxOut(len(block)))
			b.ReportAllocs()
			for b.Loop() {
				dst = r.Process(dst[:0], block)
			}
			heard := time.Duration(b.N) * 20 * time.Millisecond
			b.ReportMetric(float64(heard)/float64(b.Elapsed()), "x-realtime")
		})
	}
}

func sample(pcm []byte, i int) int { return int(int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8)) }

func abs(v int) int { return max(v, -v) }

// TestResamplersShareFilters: sessions that begin at the same time share the filters. (The race detector decides this
// test.)
func TestResamplersShareFilters(t *testing.T) {
	pcm := testutil.Noise(22050, -12, 100*time.Millisecond, 5)
	out := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			r, err := audio.NewResampler(22050, 32000)
			if err != nil {
				t.Error(err)
				return
			}
			out[i] = r.Flush(r.Process(nil, pcm))
		})
	}
	wg.Wait()
	for i := range out {
		if !bytes.Equal(out[i], out[0]) {
			t.Errorf("stream %d differs", i)
		}
	}
}
