package voice

import "math"

// The tune is a falling base line with a peak on each stressed syllable and a fall or a
// rise at the end of a phrase. Steps are in semitones relative to the voice's pitch.
const (
	baseTop    = 1.5  // base line at the beginning of a phrase
	baseBottom = -3.0 // and at its end
	accent     = 3.5
	minorRise  = 2.0
	finalFall  = -3.0
	askRise    = 7.0
)

func tune(t *track, phrases []phrase, tb timbre) {
	steps := make([]float64, len(t.frames))
	for _, p := range phrases {
		phraseTune(t, p, steps, tb.lively)
	}
	// Two passes of a mean over 50 ms round the steps.
	for range 2 {
		steps = means(steps, 10)
	}
	for i := range t.frames {
		// A slight waver keeps long vowels from sounding mechanical.
		x := float64(i) * frameMS / 1000
		waver := 0.12*math.Sin(2*math.Pi*4.7*x) + 0.08*math.Sin(2*math.Pi*7.1*x+1)
		t.frames[i].f0 = tb.pitch * math.Exp2((steps[i]+waver)/12)
	}
}

func phraseTune(t *track, p phrase, steps []float64, lively float64) {
	from, to := t.start[p.first], t.start[p.last]
	frameAt := func(ms float64) int { return min(max(int(ms/frameMS), 0), len(steps)) }
	for k := frameAt(from); k < frameAt(to); k++ {
		x := (float64(k)*frameMS - from) / (to - from)
		steps[k] = lively * (baseTop + (baseBottom-baseTop)*x)
	}
	accents := 0
	last := -1
	for i := p.first; i < p.last; i++ {
		s := &t.segs[i]
		if !s.ph.isVowel() {
			continue
		}
		if s.stress == 1 {
			height := lively * accent * math.Pow(0.88, float64(accents))
			if accents == 0 {
				height *= 1.2
			}
			accents++
			a, b := frameAt(t.start[i]-30), frameAt(t.start[i+1]-0.25*s.dur)
			for k := a; k < b; k++ {
				steps[k] += height
			}
			last = i
		}
	}
	if last < 0 {
		last = p.first
	}
	end := finalMove(p)
	a, b := frameAt(t.start[last]+0.5*t.segs[last].dur), frameAt(to)
	for k := a; k < b; k++ {
		x := float64(k-a+1) / float64(b-a)
		steps[k] += lively * end * x
	}
	// The pause keeps the pitch, so that the next phrase does not begin with a glide.
	for k := frameAt(to); k < len(steps); k++ {
		steps[k] = steps[max(0, frameAt(to)-1)]
	}
}

func finalMove(p phrase) float64 {
	switch {
	case p.asks:
		return askRise
	case p.brk == minorBreak:
		return minorRise
	}
	return finalFall
}
