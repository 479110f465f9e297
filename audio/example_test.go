package audio_test

import (
	"fmt"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// A microphone at 48 kHz for a model with 16 kHz input.
func ExampleResampler() {
	r, err := audio.NewResampler(48000, 16000)
	if err != nil {
		fmt.Println(err)
		return
	}
	frame := testutil.Tone(48000, 440, -6, 20*time.Millisecond)
	out := make([]byte, 0, r.MaxOut(len(frame)))
	for range 3 {
		out = r.Process(out[:0], frame) // valid until the next call
		fmt.Println(audio.MS(16000, len(out)), "ms")
	}
	out = r.Flush(out[:0])
	fmt.Println("held back:", audio.MS(16000, len(out)), "ms, latency", r.Latency().Round(time.Millisecond))
	// Output:
	// 17 ms
	// 20 ms
	// 20 ms
	// held back: 2 ms, latency 3ms
}

func ExampleDetector() {
	const rate = 16000
	sound := slices.Concat(testutil.Silence(rate, time.Second), testutil.SpeechLike(rate, 2*time.Second, 1), testutil.Silence(rate, time.Second))

	d := audio.NewDetector(audio.DetectorOptions{Rate: rate})
	for frame := range slices.Chunk(sound, audio.Bytes(rate, 20*time.Millisecond)) {
		for _, a := range d.Process(frame) {
			fmt.Printf("started %v: the sound changed at %d ms, reported as %d ms, known at %d ms\n", a.Started, a.EdgeMS, a.ReportMS, a.AtMS)
		}
	}
	// Output:
	// started true: the sound changed at 1000 ms, reported as 700 ms, known at 1060 ms
	// started false: the sound changed at 3000 ms, reported as 3500 ms, known at 3500 ms
}
