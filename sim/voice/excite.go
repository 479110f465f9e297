package voice

// Levels of the sources in dB relative to a stressed vowel.
const (
	breathAfterStop = -19
	breathOfH       = -17
	voiceBar        = -13
	weakVowel       = -4
	secondaryVowel  = -1
)

func (t *track) excite(i int) {
	s := &t.segs[i]
	p := s.ph.info()
	span := t.span(i)
	for k := range span {
		span[k].tilt = modalTilt
	}
	switch p.kind {
	case vowel:
		t.sonorant(s, span, [...]float64{weakVowel, 0, secondaryVowel}[s.stress])
	case glide, nasal, flap:
		t.sonorant(s, span, p.voice)
	case aspirate:
		t.exciteH(i, span)
	case fricative:
		t.exciteFricative(i, span)
	case stop:
		t.exciteStop(i, span)
	case affricate:
		t.exciteAffricate(i, span)
	}
}

func (t *track) sonorant(s *segment, span []frame, level float64) {
	breath := int(s.breath / frameMS)
	voice := db(level)
	for k := range span {
		if k < breath {
			span[k].ah = db(breathAfterStop)
			span[k].bw[0] += 150
			continue
		}
		span[k].av = voice
	}
}

func (t *track) voicedAt(i int) bool { return t.at(i).ph.info().voiced }

func (t *track) exciteH(i int, span []frame) {
	between := t.voicedAt(i-1) && t.voicedAt(i+1)
	for k := range span {
		span[k].ah = db(breathOfH)
		if between {
			span[k].av, span[k].tilt = db(-10), 800
		}
	}
}

func (t *track) exciteFricative(i int, span []frame) {
	p := t.segs[i].ph.info()
	n := len(span)
	// At the end of a phrase the voicing fades before the friction does.
	voiced := n
	if next := t.at(i + 1).ph; next == phSil || next.obstruent() && !next.info().voiced {
		voiced = n / 2
	}
	const rise = 8 // frames
	edge := float64(min(rise, max(1, n/3)))
	for k := range span {
		span[k].noise, span[k].af = p.noise, db(p.noiseDB)*ramp(float64(min(k+1, n-k))/edge)
		if p.voiced && k < voiced {
			span[k].av, span[k].tilt = db(p.voice), 900
		}
	}
}

// burstMS is the length of the explosion of a stop in ms.
var burstMS = map[phone]float64{phP: 7.5, phT: 15, phK: 20, phB: 5, phD: 7.5, phG: 12.5}

func (t *track) exciteStop(i int, span []frame) {
	s := &t.segs[i]
	p := s.ph.info()
	n := len(span)
	burst := 0
	if s.released {
		burst = min(int(burstMS[s.ph]/frameMS), n/2)
	}
	t.close(i, span[:n-burst])
	level, breath := db(p.noiseDB), db(breathAfterStop)
	if t.at(i+1).ph == phSil || !s.onset {
		level *= 0.25
		breath *= 0.25
	}
	for k := n - burst; k < n; k++ {
		x := float64(k-(n-burst)) / float64(max(burst, 1))
		span[k].noise, span[k].af = p.noise, level*(1-0.5*x)
		if p.voiced {
			span[k].av = db(voiceBar)
		} else {
			span[k].ah = breath * x
		}
	}
}

// close sets the sources while the mouth is shut: nothing, or the hum of a
// voiced stop, which fades as the pressure in the mouth rises.
func (t *track) close(i int, span []frame) {
	if !t.segs[i].ph.info().voiced {
		return
	}
	before := t.voicedAt(i - 1)
	for k := range span {
		if !before && k < len(span)/2 {
			continue
		}
		span[k].av, span[k].tilt = db(voiceBar-6*float64(k)/float64(len(span))), voiceBarTilt
	}
}

func (t *track) exciteAffricate(i int, span []frame) {
	p := t.segs[i].ph.info()
	n := len(span)
	shut := n * 2 / 5
	t.close(i, span[:shut])
	for k := shut; k < n; k++ {
		x := float64(k-shut) / float64(n-shut)
		span[k].noise, span[k].af = p.noise, db(p.noiseDB)*(1-0.6*x*x)
		if p.voiced {
			span[k].av, span[k].tilt = db(-14), 900
		}
	}
}

func (t *track) smooth() {
	blur(t.frames, 4, func(f *frame) *float64 { return &f.av })
	blur(t.frames, 4, func(f *frame) *float64 { return &f.ah })
	blur(t.frames, 2, func(f *frame) *float64 { return &f.nose })
	for j := range 3 {
		blur(t.frames, 2, func(f *frame) *float64 { return &f.f[j] })
	}
}

func blur(frames []frame, width int, field func(*frame) *float64) {
	values := make([]float64, len(frames))
	for i := range frames {
		values[i] = *field(&frames[i])
	}
	for i, mean := range means(values, width) {
		*field(&frames[i]) = max(0, mean)
	}
}

func means(values []float64, width int) []float64 {
	if len(values) == 0 {
		return nil
	}
	out := make([]float64, len(values))
	at := func(i int) float64 { return values[min(max(i, 0), len(values)-1)] }
	sum := 0.0
	for i := -width; i <= width; i++ {
		sum += at(i)
	}
	for i := range out {
		out[i] = sum / float64(2*width+1)
		sum += at(i+width+1) - at(i-width)
	}
	return out
}
