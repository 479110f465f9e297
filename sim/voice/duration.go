package voice

// tempo brings the durations below to about 165 words a minute.
const tempo = 0.94

// timePhrase sets the durations of the segments of a phrase by the rules of Klatt (1979): each phone has an inherent
// duration that a product of factors shortens or stretches, but never below a minimum.
func timePhrase(segs []segment, p phrase, speed float64) {
	lastVowel := p.last
	for i := p.last - 1; i >= p.first; i-- {
		if segs[i].ph.isVowel() {
			lastVowel = i
			break
		}
	}
	finalStart := lastVowel
	for finalStart > p.first && segs[finalStart-1].onset {
		finalStart--
	}
	for i := p.first; i < p.last; i++ {
		s := &segs[i]
		info := s.ph.info()
		least := info.least
		var factor float64
		if info.kind == vowel {
			factor = vowelFactor(segs, i, p, lastVowel)
		} else {
			factor = consonantFactor(segs, i, p, finalStart)
		}
		switch {
		case s.stress > 0 || info.kind == flap:
		case s.weak || info.kind != vowel:
			least *= 0.7
		default:
			least *= 0.6
		}
		s.dur = max(((info.inherent-least)*factor+least+0.6*s.breath)/speed, 4*frameMS)
		s.breath /= speed
	}
}

func vowelFactor(segs []segment, i int, p phrase, lastVowel int) float64 {
	s := &segs[i]
	f := 0.75
	if i == lastVowel {
		f = 1.35
	}
	if vowelAfter(segs, i) {
		f *= 0.85 * 0.9
	} else if vowelBefore(segs, i) {
		f *= 0.85
	}
	switch {
	case s.stress == 2:
		f *= 0.85
	case s.stress == 0 && s.weak:
		f *= 0.55
	case s.stress == 0:
		f *= 0.65
	}
	return f * following(segs, i, p, i == lastVowel)
}

// following returns how the consonant after a vowel changes its length: long before voiced
// fricatives, short before voiceless stops, and most strongly at the end of a phrase.
func following(segs []segment, i int, p phrase, final bool) float64 {
	if i+1 >= p.last || segs[i+1].onset && segs[i+1].wordStart {
		return 1.1
	}
	next := segs[i+1].ph.info()
	f := 1.0
	switch {
	case next.kind == vowel:
		f = 1.1
	case next.kind == fricative && next.voiced:
		f = 1.4
	case (next.kind == stop || next.kind == affricate) && next.voiced:
		f = 1.2
	case next.kind == stop || next.kind == affricate:
		f = 0.7
	case next.kind == nasal:
		f = 0.9
	}
	if !final {
		f = 0.65 + 0.35*f
	}
	return f
}

func consonantFactor(segs []segment, i int, p phrase, finalStart int) float64 {
	s := &segs[i]
	info := s.ph.info()
	f := 1.0
	if !s.wordStart {
		f *= 0.85
	}
	if i >= finalStart && !s.onset {
		f *= 1.3
	}
	if s.stress == 0 {
		f *= 0.7
	}
	cons := func(j int) bool {
		return j >= p.first && j < p.last && !segs[j].ph.isVowel() && segs[j].ph.info().kind != silence
	}
	before, after := cons(i-1), cons(i+1)
	switch {
	case before && after:
		f *= 0.55
	case before || after:
		f *= 0.75
	}
	if info.kind == aspirate && s.stress == 0 {
		f *= 0.7
	}
	return f
}

func vowelBefore(segs []segment, i int) bool {
	for !segs[i].wordStart {
		if i--; segs[i].ph.isVowel() {
			return true
		}
	}
	return false
}

func vowelAfter(segs []segment, i int) bool {
	for !segs[i].wordEnd {
		if i++; segs[i].ph.isVowel() {
			return true
		}
	}
	return false
}
