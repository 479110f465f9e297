package talk

import (
	"slices"

	"voicegw/audio"
)

// voiced returns where the speech in pcm begins and ends, in bytes: the first and
// the last 10 ms that stand out from the background. A clip in which nothing
// stands out is taken as a whole.
func voiced(pcm []byte, rate int) (from, to int) {
	frame := rate / 100 * audio.BytesPerSample
	if frame == 0 || len(pcm) < frame {
		return 0, len(pcm)
	}
	var levels []float64
	for at := 0; at+frame <= len(pcm); at += frame {
		rms, _ := audio.Level(pcm[at : at+frame])
		levels = append(levels, rms)
	}
	limit := threshold(levels)
	first := slices.IndexFunc(levels, func(l float64) bool { return l >= limit })
	if first < 0 {
		return 0, len(pcm)
	}
	last := first
	for i, l := range levels {
		if l >= limit {
			last = i
		}
	}
	return first * frame, (last + 1) * frame
}

// threshold is 12 dB over the background (the level that a tenth of the frames
// stay under), within 12 to 35 dB below the loudest frame, and never below -55
// dBFS, where no recording has speech.
func threshold(levels []float64) float64 {
	sorted := slices.Sorted(slices.Values(levels))
	floor, peak := sorted[len(sorted)/10], sorted[len(sorted)-1]
	return max(min(floor+12, peak-12), peak-35, -55)
}
