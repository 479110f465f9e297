package voice

import (
	"time"

	"voicegw/audio"
)

// How speech is detected.
const (
	// silenceMS of silence end a span: less than any provider needs to end a turn.
	silenceMS = 200
	// edgeBefore and edgeAfter bound the search for the voiced sample at a detected edge. A detector's frame has 10 ms.
	edgeBefore = 40 * time.Millisecond
	edgeAfter  = 20 * time.Millisecond
	// backgroundGap is the minimum distance of background from speech.
	backgroundGap = 100 * time.Millisecond
)

// detect returns the spans of speech in a clip: those of this program's voice activity detector, with their edges
// moved to the samples where the sound stands out from the background.
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
	take(d.Process(make([]byte, audio.Bytes(clip.Rate, time.Second)))) // so that the last span ends
	limit := threshold(clip, spans)
	for i := range spans {
		spans[i].Start = firstAbove(clip, spans[i].Start-edgeAfter, spans[i].Start+edgeBefore, limit, spans[i].Start)
		spans[i].End = lastAbove(clip, spans[i].End-edgeBefore, spans[i].End+edgeAfter, limit, spans[i].End)
	}
	return spans
}

// threshold is the magnitude from which a sample belongs to the voice: twice the background's peak, at least 40 dB
// below the loudest sample and at least -60 dBFS.
func threshold(clip audio.Clip, spans []Span) int {
	background, loudest := 0, 0
	next := 0
	for i := 0; i+1 < len(clip.PCM); i += audio.BytesPerSample {
		at := audio.Duration(clip.Rate, i)
		v := magnitude(clip.PCM, i)
		loudest = max(loudest, v)
		for next < len(spans) && at > spans[next].End+backgroundGap {
			next++
		}
		if next == len(spans) || at < spans[next].Start-backgroundGap {
			background = max(background, v)
		}
	}
	const quiet = 33 // -60 dBFS
	return max(min(2*background, loudest/4), loudest/100, quiet)
}

func firstAbove(clip audio.Clip, from, to time.Duration, limit int, otherwise time.Duration) time.Duration {
	end := min(audio.Bytes(clip.Rate, to), len(clip.PCM)&^1)
	for i := audio.Bytes(clip.Rate, from); i < end; i += audio.BytesPerSample {
		if magnitude(clip.PCM, i) >= limit {
			return audio.Duration(clip.Rate, i)
		}
	}
	return otherwise
}

func lastAbove(clip audio.Clip, from, to time.Duration, limit int, otherwise time.Duration) time.Duration {
	begin := audio.Bytes(clip.Rate, from)
	for i := min(audio.Bytes(clip.Rate, to), len(clip.PCM)&^1) - audio.BytesPerSample; i >= begin; i -= audio.BytesPerSample {
		if magnitude(clip.PCM, i) >= limit {
			return audio.Duration(clip.Rate, i+audio.BytesPerSample)
		}
	}
	return otherwise
}

func magnitude(pcm []byte, i int) int {
	v := int(int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8))
	return max(v, -v)
}
