package audio_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

var detectorRates = []int{8000, 11025, 16000, 24000, 48000}

// hear runs a complete signal through a new Detector in frames of 20 ms.
func hear(opt audio.DetectorOptions, pcm []byte) []audio.Activity {
	return hearCut(opt, pcm, blocks20(opt.Rate))
}

func hearCut(opt audio.DetectorOptions, pcm []byte, next func() int) []audio.Activity {
	d := audio.NewDetector(opt)
	var all []audio.Activity
	for len(pcm) > 0 {
		n := min(next()*audio.BytesPerSample, len(pcm))
		all = append(all, d.Process(pcm[:n])...)
		pcm = pcm[n:]
	}
	return all
}

// scaled changes the level of pcm to an rms of dBFS.
func scaled(pcm []byte, dBFS float64) []byte {
	rms, _ := testutil.Level(pcm)
	gain := math.Pow(10, (dBFS-rms)/20)
	out := make([]byte, 0, len(pcm))
	for i := 0; i < len(pcm); i += 2 {
		v := int(math.Round(float64(sample(pcm, i)) * gain))
		out = append(out, byte(v), byte(uint16(v)>>8))
	}
	return out
}

// checkUtterance wants exactly one utterance from start to end, in ms, each decided within 80 ms.
func checkUtterance(t *testing.T, got []audio.Activity, start, end int64) {
	t.Helper()
	if len(got) != 2 || !got[0].Started || got[1].Started {
		t.Errorf("%+v, want one start and one stop", got)
		return
	}
	near := func(what string, got, want, slack int64) {
		if got < want-slack || got > want+slack {
			t.Errorf("%s at %d ms, want %d", what, got, want)
		}
	}
	near("it begins", got[0].EdgeMS, start, 30)
	near("it ends", got[1].EdgeMS, end, 40)
	if late := got[0].AtMS - start; late > 80 {
		t.Errorf("the start is decided %d ms after it, want at most 80", late)
	}
	if want := max(got[0].EdgeMS-300, 0); got[0].ReportMS != want {
		t.Errorf("the start is reported at %d ms, want %d", got[0].ReportMS, want)
	}
	if want := got[1].EdgeMS + 500; got[1].ReportMS != want || got[1].AtMS < want || got[1].AtMS > want+15 {
		t.Errorf("the stop is reported at %d ms and decided at %d, want %d", got[1].ReportMS, got[1].AtMS, want)
	}
}

func TestDetectorHearsSpeech(t *testing.T) {
	for _, rate := range detectorRates {
		quiet := testutil.Silence(rate, time.Second)
		for seed := range uint64(3) {
			speech := testutil.SpeechLike(rate, 2*time.Second, seed)
			for name, c := range map[string]struct {
				pcm   []byte
				start int64
			}{
				"after digital silence": {slices.Concat(quiet, speech, quiet), 1000},
				"from the first sample": {slices.Concat(speech, quiet), 0},
				"in a quiet room": {testutil.Mix(testutil.Noise(rate, -62, 5*time.Second, seed),
					slices.Concat(quiet, speech)), 1000},
				"quietly spoken": {slices.Concat(quiet, scaled(speech, -33), quiet), 1000},
				"15 dB above white noise": {testutil.Mix(testutil.Noise(rate, -45, 7*time.Second, seed),
					slices.Concat(quiet, quiet, scaled(speech, -30))), 2000},
				"over hum": {testutil.Mix(hum(rate, 6*time.Second), slices.Concat(quiet, quiet, speech)), 2000},
			} {
				t.Run(fmt.Sprintf("%s/%d Hz/%d", name, rate, seed), func(t *testing.T) {
					t.Parallel()
					checkUtterance(t, hear(audio.DetectorOptions{Rate: rate}, c.pcm), c.start, c.start+2000)
				})
			}
		}
	}
}

// hum is mains hum with harmonics, 20 dB louder than speech may be.
func hum(rate int, d time.Duration) []byte {
	return testutil.Mix(testutil.Tone(rate, 50, -20, d), testutil.Tone(rate, 100, -30, d),
		testutil.Tone(rate, 150, -38, d), testutil.Tone(rate, 250, -50, d))
}

// knock is a resonating box of wood: a hard onset that decays by 60 dB in decay.
func knock(rate int, decay time.Duration, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 9))
	var out []byte
	for i := range rate * 3 / 10 {
		at := float64(i) / float64(rate)
		v := math.Sin(2*math.Pi*180*at) + 0.5*math.Sin(2*math.Pi*410*at) + 0.3*rng.NormFloat64()
		out = appendAll(out, []int{int(15000 * v * math.Exp(-6.9*at/decay.Seconds()))})
	}
	return out
}

// click is 2 ms at full scale.
func click(rate int) []byte {
	var out []byte
	for range rate / 500 {
		out = appendAll(out, []int{32767})
	}
	return out
}

// brown is noise that falls by 6 dB an octave, like an air conditioner.
func brown(rate int, dBFS float64, d time.Duration) []byte {
	white := testutil.Noise(rate, -20, d, 5)
	var out []byte
	v := 0.0
	for i := 0; i < len(white); i += 2 {
		v = v*0.98 + float64(sample(white, i))*0.2
		out = appendAll(out, []int{int(v)})
	}
	return scaled(out, dBFS)
}

func TestDetectorIgnoresOtherSounds(t *testing.T) {
	for _, rate := range detectorRates {
		quiet := testutil.Silence(rate, time.Second)
		k := knock(rate, 150*time.Millisecond, 3)
		for name, pcm := range map[string][]byte{
			"digital silence":               testutil.Silence(rate, 3*time.Second),
			"room noise":                    testutil.Noise(rate, -55, 3*time.Second, 1),
			"white noise":                   testutil.Noise(rate, -45, 3*time.Second, 2),
			"loud white noise":              testutil.Noise(rate, -25, 3*time.Second, 3),
			"white noise after silence":     slices.Concat(quiet, testutil.Noise(rate, -35, 3*time.Second, 4)),
			"an air conditioner":            brown(rate, -45, 3*time.Second),
			"an air conditioner, suddenly":  slices.Concat(quiet, brown(rate, -42, 3*time.Second)),
			"hum":                           hum(rate, 3*time.Second),
			"hum, suddenly":                 slices.Concat(quiet, hum(rate, 3*time.Second)),
			"a click":                       slices.Concat(quiet, click(rate), quiet),
			"clicks":                        slices.Concat(quiet, click(rate), quiet[:rate/5*2], click(rate), quiet[:rate/10*2], click(rate), quiet),
			"a knock":                       slices.Concat(quiet, knock(rate, 100*time.Millisecond, 1), quiet),
			"knocks":                        slices.Concat(quiet, k, k, k, quiet),
			"a step of direct current":      slices.Concat(quiet, appendAll(nil, slices.Repeat([]int{9000}, rate)), quiet),
			"the wrong half of every range": appendAll(nil, slices.Repeat([]int{-32768}, rate)),
		} {
			if got := hear(audio.DetectorOptions{Rate: rate}, pcm); len(got) != 0 {
				t.Errorf("%s at %d Hz is detected as speech: %+v", name, rate, got)
			}
		}
	}
}

func TestDetectorIsIndependentOfCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for _, rate := range detectorRates {
		gap := testutil.Silence(rate, 800*time.Millisecond)
		pcm := testutil.Mix(testutil.Noise(rate, -50, 8*time.Second, 1), slices.Concat(
			gap, testutil.SpeechLike(rate, time.Second, 1), gap, testutil.SpeechLike(rate, time.Second, 2), gap, click(rate), gap))
		opt := audio.DetectorOptions{Rate: rate}
		want := hearCut(opt, pcm, func() int { return len(pcm) })
		if len(want) != 4 {
			t.Fatalf("%d Hz: %+v, want two utterances", rate, want)
		}
		for name, next := range map[string]func() int{
			"20 ms": blocks20(rate), "one sample": func() int { return 1 }, "random": func() int { return rng.IntN(rate / 10) },
		} {
			if diff := cmp.Diff(want, hearCut(opt, pcm, next)); diff != "" {
				t.Errorf("%d Hz, cut into %s blocks (-whole +cut):\n%s", rate, name, diff)
			}
		}
	}
}

// TestDetectorSilence: a pause within a sentence is not its end, and a click in it does not prolong it.
func TestDetectorSilence(t *testing.T) {
	const rate = 16000
	a, b := testutil.SpeechLike(rate, time.Second, 1), testutil.SpeechLike(rate, time.Second, 2)
	tail := testutil.Silence(rate, time.Second)
	with := func(pause time.Duration, silence int) []audio.Activity {
		pcm := slices.Concat(a, testutil.Silence(rate, pause), b, tail)
		return hear(audio.DetectorOptions{Rate: rate, SilenceMS: silence}, pcm)
	}
	if got := with(400*time.Millisecond, 500); len(got) != 2 || got[1].EdgeMS < 2380 {
		t.Errorf("a pause of 400 ms: %+v, want one utterance", got)
	}
	if got := with(400*time.Millisecond, 200); len(got) != 4 {
		t.Errorf("a pause of 400 ms at SilenceMS 200: %+v, want two utterances", got)
	}
	if got := with(600*time.Millisecond, 0); len(got) != 4 {
		t.Errorf("a pause of 600 ms at the default: %+v, want two utterances", got)
	}
	quarter := testutil.Silence(rate, 250*time.Millisecond)
	pcm := slices.Concat(a, quarter, click(rate), quarter, click(rate), tail)
	if got := hear(audio.DetectorOptions{Rate: rate}, pcm); len(got) != 2 || got[1].AtMS > 1550 {
		t.Errorf("clicks in the silence: %+v, want the stop at 1500 ms", got)
	}
}

// TestDetectorKeepsHearingALongVowel: a long vowel does not become the background, however long it is.
func TestDetectorKeepsHearingALongVowel(t *testing.T) {
	const rate = 16000
	vowel := testutil.Mix(testutil.Tone(rate, 150, -20, 6*time.Second), testutil.Tone(rate, 300, -16, 6*time.Second),
		testutil.Tone(rate, 600, -14, 6*time.Second), testutil.Tone(rate, 1200, -24, 6*time.Second))
	quiet := testutil.Silence(rate, time.Second)
	checkUtterance(t, hear(audio.DetectorOptions{Rate: rate}, slices.Concat(quiet, vowel, quiet)), 1000, 7000)
}

// TestDetectorFindsTheEndInNoise: after speech in a noisy place the end is found as well.
func TestDetectorFindsTheEndInNoise(t *testing.T) {
	const rate = 16000
	pcm := slices.Concat(testutil.Silence(rate, time.Second), testutil.Mix(testutil.SpeechLike(rate, time.Second, 1),
		testutil.Noise(rate, -50, 6*time.Second, 1)))
	got := hear(audio.DetectorOptions{Rate: rate}, pcm)
	if len(got) != 2 || got[1].AtMS > 4500 {
		t.Errorf("%+v, want a stop within 2.5 s of the end", got)
	}
}

func TestDetectorOptions(t *testing.T) {
	const rate = 16000
	quiet := testutil.Silence(rate, time.Second)
	speech := slices.Concat(quiet, testutil.SpeechLike(rate, time.Second, 1), quiet)
	first := func(opt audio.DetectorOptions) audio.Activity {
		t.Helper()
		got := hear(opt, speech)
		if len(got) != 2 {
			t.Fatalf("%+v: %+v", opt, got)
		}
		return got[0]
	}
	if a := first(audio.DetectorOptions{Rate: rate, PrefixMS: -1}); a.ReportMS != a.EdgeMS {
		t.Errorf("without prefix: %+v", a)
	}
	if a := first(audio.DetectorOptions{Rate: rate, PrefixMS: 100}); a.ReportMS != a.EdgeMS-100 {
		t.Errorf("prefix 100: %+v", a)
	}
	if a := first(audio.DetectorOptions{Rate: rate, PrefixMS: 5000}); a.ReportMS != 0 {
		t.Errorf("prefix 5000: %+v", a)
	}
	if a := first(audio.DetectorOptions{Rate: rate, MinSpeechMS: 120}); a.AtMS < 1110 || a.AtMS > 1150 {
		t.Errorf("120 ms of speech wanted: %+v", a)
	}
	if diff := cmp.Diff(hear(audio.DetectorOptions{Rate: rate}, speech), audio.NewDetector(audio.DetectorOptions{}).Process(speech)); diff != "" {
		t.Errorf("the rate is not 16000 by default:\n%s", diff)
	}
	soft := slices.Concat(quiet, scaled(testutil.SpeechLike(rate, time.Second, 1), -48), quiet)
	if got := hear(audio.DetectorOptions{Rate: rate, Threshold: 0.9}, soft); len(got) != 0 {
		t.Errorf("threshold 0.9 detects %+v in soft speech", got)
	}
	if got := hear(audio.DetectorOptions{Rate: rate, Threshold: 0.1}, soft); len(got) != 2 {
		t.Errorf("threshold 0.1 detects %+v in soft speech", got)
	}
	for _, opt := range []audio.DetectorOptions{
		{Rate: -1}, {Rate: 1}, {Rate: 1 << 30}, {SilenceMS: -5}, {MinSpeechMS: 1 << 30}, {MinSpeechMS: -1}, {Threshold: math.NaN()},
		{Threshold: -7}, {Threshold: 7},
	} {
		audio.NewDetector(opt).Process(speech) // must not panic
	}
}

func TestDetectorState(t *testing.T) {
	const rate = 16000
	d := audio.NewDetector(audio.DetectorOptions{Rate: rate})
	speech := testutil.SpeechLike(rate, time.Second, 1)
	first := slices.Clone(d.Process(speech[:rate]))
	if !d.Speaking() || d.ClockMS() != 500 {
		t.Errorf("half a second into speech: speaking %v, clock %d ms", d.Speaking(), d.ClockMS())
	}
	if d.Process(append(speech[rate:rate+16], 0)); d.ClockMS() != 500 {
		t.Errorf("8 samples and a half later the clock shows %d ms", d.ClockMS())
	}
	d.Reset()
	if d.Speaking() || d.ClockMS() != 0 {
		t.Errorf("after Reset: speaking %v, clock %d ms", d.Speaking(), d.ClockMS())
	}
	if diff := cmp.Diff(first, d.Process(speech[:rate])); diff != "" {
		t.Errorf("after Reset the same audio gives other results:\n%s", diff)
	}
}

func TestDetectorDoesNotAllocate(t *testing.T) {
	const rate = 16000
	pcm := slices.Concat(testutil.SpeechLike(rate, time.Second, 1), testutil.Silence(rate, time.Second))
	d := audio.NewDetector(audio.DetectorOptions{Rate: rate})
	at := 0
	if n := testing.AllocsPerRun(400, func() {
		d.Process(pcm[at : at+640])
		at = (at + 640) % len(pcm)
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func FuzzDetector(f *testing.F) {
	f.Add(testutil.SpeechLike(8000, 300*time.Millisecond, 1), uint16(8000), uint8(160))
	f.Add(testutil.Noise(8000, -3, 100*time.Millisecond, 1), uint16(48000), uint8(1))
	f.Fuzz(func(t *testing.T, pcm []byte, rate uint16, cut uint8) {
		opt := audio.DetectorOptions{Rate: int(rate), SilenceMS: 50, MinSpeechMS: 20, Threshold: 0.01}
		pcm = pcm[:len(pcm)&^1]
		got := hearCut(opt, pcm, func() int { return int(cut) + 1 })
		if diff := cmp.Diff(got, hearCut(opt, pcm, func() int { return len(pcm) })); diff != "" {
			t.Fatalf("the cut makes a difference:\n%s", diff)
		}
		last := int64(0)
		for i, a := range got {
			if a.Started != (i%2 == 0) || a.AtMS < last || a.EdgeMS > a.AtMS || a.EdgeMS < 0 || a.ReportMS < 0 {
				t.Fatalf("activity %d makes no sense: %+v", i, got)
			}
			last = a.AtMS
		}
	})
}

// BenchmarkDetector measures one frame of 20 ms.
func BenchmarkDetector(b *testing.B) {
	for _, rate := range []int{8000, 16000, 24000, 48000} {
		for name, pcm := range map[string][]byte{
			"speech":  slices.Concat(testutil.SpeechLike(rate, 2*time.Second, 1), testutil.Silence(rate, time.Second)),
			"silence": testutil.Silence(rate, time.Second),
			"noise":   slices.Concat(testutil.Silence(rate, 2*time.Second), testutil.Noise(rate, -30, time.Second, 1)),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, rate), func(b *testing.B) {
				d := audio.NewDetector(audio.DetectorOptions{Rate: rate})
				frame := rate / 50 * 2
				at := 0
				b.ReportAllocs()
				for b.Loop() {
					d.Process(pcm[at : at+frame])
					at = (at + frame) % len(pcm)
				}
			})
		}
	}
}

// TestDetectorDecidesAsTheReference compares every decision with a plain implementation, for generated audio of all
// kinds.
func TestDetectorDecidesAsTheReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	for _, rate := range append(detectorRates, 44100) {
		quiet := testutil.Silence(rate, 700*time.Millisecond)
		heard := 0
		for i := range 6 {
			seed := rng.Uint64()
			speech := scaled(testutil.SpeechLike(rate, time.Second, seed), -20-30*rng.Float64())
			parts := [][]byte{
				quiet, speech, knock(rate, 100*time.Millisecond, seed), click(rate), hum(rate, time.Second),
				brown(rate, -45, time.Second), testutil.Noise(rate, -60+40*rng.Float64(), time.Second, seed), speech, quiet,
			}
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			pcm := slices.Concat(parts...)
			if i%2 == 0 { // in a room with some noise
				pcm = testutil.Mix(pcm, testutil.Noise(rate, -75+25*rng.Float64(), 8*time.Second, seed))
			}
			opt := audio.DetectorOptions{Rate: rate, SilenceMS: 100 + rng.IntN(600), MinSpeechMS: 20 + rng.IntN(100), Threshold: 0.2 + 0.6*rng.Float64(), SustainMS: 400 * rng.IntN(2)}
			want := audio.ReferenceHear(opt, pcm)
			heard += len(want)
			if diff := cmp.Diff(want, hear(opt, pcm)); diff != "" {
				t.Errorf("%+v, audio %d (-reference +detector):\n%s", opt, i, diff)
			}
		}
		if heard < 12 {
			t.Errorf("at %d Hz the reference has %d changes: too few to compare", rate, heard)
		}
	}
}
