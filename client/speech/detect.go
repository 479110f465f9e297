package speech

import (
	"time"

	"voicegw/audio"
)

// How speech is detected.
const (
	// silenceMS of silence end a stretch of speech: less than any provider needs to end a turn.
	silenceMS = 200
	// before and after an edge that the detector has found, the voiced sample is looked
	// for: its frames have 10 ms.
	before = 40 * time.Millisecond
	after  = 20 * time.Millisecond
	// apart from speech by this much is background.
	apart = 100 * time.Millisecond
)

// detect returns the stretches of speech in a clip. This program's voice activity detector finds
// them; their edges are then moved to the samples where the sound first and last stands out from the
// background. It returns nothing for a clip without speech.
func detect(clip audio.Clip) []Span {
	d := audio.NewDetector(audio.DetectorOptions{Rate: clip.Rate, PrefixMS: -1, SilenceMS: silenceMS})
	var spans []Span
	take := func(found []audio.Activity) {
		for _, a := range found {
			at := time.Duration(a.EdgeMS) * time.Millisecond
			if a.Started {
				spans = append(spans, Span{Start: at, End: clip.Duration()})
				continue
			}
			spans[len(spans)-1].End = min(at, clip.Duration())
		}
	}
	take(d.Process(clip.PCM))
	take(d.Process(make([]byte, audio.Bytes(clip.Rate, time.Second)))) // so that the last one ends
	limit := threshold(clip, spans)
	for i := range spans {
		spans[i].Start = firstAbove(clip, spans[i].Start-after, spans[i].Start+before, limit, spans[i].Start)
		spans[i].End = lastAbove(clip, spans[i].End-before, spans[i].End+after, limit, spans[i].End)
	}
	return spans
}

// threshold is the magnitude from which a sample belongs to the voice: twice what the
// background reaches, at least 40 dB below the loudest sample and at least -60 dBFS.
func threshold(clip audio.Clip, spans []Span) int {
	background, loudest := 0, 0
	next := 0
	for i := 0; i+1 < len(clip.PCM); i += audio.BytesPerSample {
		at := audio.Duration(clip.Rate, i)
		v := magnitude(clip.PCM, i)
		loudest = max(loudest, v)
		for next < len(spans) && at > spans[next].End+apart {
			next++
		}
		if next == len(spans) || at < spans[next].Start-apart {
			background = max(background, v)
		}
	}
	const quiet = 33 // -60 dBFS
	return max(min(2*background, loudest/4), loudest/100, quiet)
}

// firstAbove returns when the first sample between two times reaches a magnitude; otherwise if none
// does.
func firstAbove(clip audio.Clip, from, to time.Duration, limit int, otherwise time.Duration) time.Duration {
	end := min(audio.Bytes(clip.Rate, to), len(clip.PCM)&^1)
	for i := audio.Bytes(clip.Rate, from); i < end; i += audio.BytesPerSample {
		if magnitude(clip.PCM, i) >= limit {
			return audio.Duration(clip.Rate, i)
		}
	}
	return otherwise
}

// lastAbove returns the end of the last sample between two times that reaches a magnitude; otherwise
// if none does.
func lastAbove(clip audio.Clip, from, to time.Duration, limit int, otherwise time.Duration) time.Duration {
	begin := audio.Bytes(clip.Rate, from)
	for i := min(audio.Bytes(clip.Rate, to), len(clip.PCM)&^1) - audio.BytesPerSample; i >= begin; i -= audio.BytesPerSample {
		if magnitude(clip.PCM, i) >= limit {
			return audio.Duration(clip.Rate, i+audio.BytesPerSample)
		}
	}
	return otherwise
}

// magnitude of the sample at byte i.
func magnitude(pcm []byte, i int) int {
	v := int(int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8))
	return max(v, -v)
}
