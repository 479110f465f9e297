package voice

import (
	"math"
	"slices"
	"strings"
)

type breakKind uint8

const (
	noBreak breakKind = iota
	minorBreak
	fullStop
	question
	exclamation
)

// pauseMS is the silence after each break.
var pauseMS = map[breakKind]float64{minorBreak: 160, fullStop: 340, exclamation: 340, question: 360}

// Silence at the ends of an utterance, and the length of an empty utterance, in ms.
const (
	leadMS  = 40
	tailMS  = 120
	emptyMS = 200
)

type phrase struct {
	first, last int // index of its first segment and past its last one
	brk         breakKind
	asks        bool // a yes-or-no question: its pitch rises
}

type score struct {
	segs    []segment
	phrases []phrase
}

func compose(words []spoken, speed float64) score {
	var sc score
	sc.segs = append(sc.segs, segment{ph: phSil, dur: leadMS, chunk: words[0].chunk})
	start, startWord := 1, 0
	for i, w := range words {
		snd := pronounce(w.word)
		if w.word == "the" && i+1 < len(words) {
			if next := pronounce(words[i+1].word); len(next) > 0 && next[0].ph.isVowel() {
				snd = []sound{{phDH, 0}, {phIY, 0}}
			}
		}
		sc.segs = appendWord(sc.segs, snd, w.chunk)
		brk := w.brk
		if i == len(words)-1 && brk == noBreak {
			brk = fullStop
		}
		if brk == noBreak || len(sc.segs) == start {
			continue
		}
		sc.phrases = append(sc.phrases, phrase{first: start, last: len(sc.segs), brk: brk, asks: brk == question &&
			!slices.Contains(whWords, words[startWord].word)})
		pause := pauseMS[brk] / speed
		if i == len(words)-1 {
			pause = tailMS
		}
		sc.segs = append(sc.segs, segment{ph: phSil, dur: pause, chunk: w.chunk})
		start, startWord = len(sc.segs), i+1
	}
	allophones(sc.segs)
	for _, p := range sc.phrases {
		timePhrase(sc.segs, p, speed)
	}
	return sc
}

// whWords begin questions that fall in pitch.
var whWords = strings.Fields("what what's where where's when who who's whose why how which")

func appendWord(segs []segment, snd []sound, chunk int) []segment {
	base := len(segs)
	weak := true
	for _, s := range snd {
		weak = weak && s.stress == 0
		segs = append(segs, segment{ph: s.ph, stress: s.stress, chunk: chunk})
	}
	word := segs[base:]
	if len(word) == 0 {
		return segs
	}
	word[0].wordStart, word[len(word)-1].wordEnd = true, true
	for i := range word {
		word[i].weak = weak
		if word[i].ph.isVowel() {
			onsetOf(word, i)
		}
	}
	// Consonants after the last vowel share its stress.
	for i := 1; i < len(word); i++ {
		if !word[i].ph.isVowel() && !word[i].onset {
			word[i].stress = word[i-1].stress
		}
	}
	return segs
}

// onsetOf marks the consonants that begin the syllable of vowel v: the longest run before it that can begin a word.
func onsetOf(word []segment, v int) {
	for i := v - 1; i >= 0 && v-i <= 3 && !word[i].ph.isVowel(); i-- {
		if !canBegin(word[i:v]) {
			return
		}
		word[i].onset = true
		word[i].stress = word[v].stress
	}
}

var onsets = func() map[[2]phone]bool {
	pairs := map[[2]phone]bool{}
	for second, firsts := range map[phone][]phone{
		phR: {phF, phTH, phSH, phP, phB, phT, phD, phK, phG},
		phL: {phP, phB, phK, phG, phF, phS},
		phW: {phT, phD, phK, phG, phS, phTH},
		phY: {phP, phB, phK, phG, phF, phV, phM, phHH, phN},
		phP: {phS}, phT: {phS}, phK: {phS}, phM: {phS}, phN: {phS},
	} {
		for _, first := range firsts {
			pairs[[2]phone{first, second}] = true
		}
	}
	return pairs
}()

func canBegin(c []segment) bool {
	switch len(c) {
	case 1:
		return c[0].ph != phNG && c[0].ph != phZH
	case 2:
		return onsets[[2]phone{c[0].ph, c[1].ph}]
	case 3:
		second := c[1].ph.info()
		return c[0].ph == phS && second.kind == stop && !second.voiced && canBegin(c[1:])
	}
	return false
}

func allophones(segs []segment) {
	at := (&track{segs: segs}).at
	for i := range segs {
		s := &segs[i]
		s.ph = variant(at(i-1), s, at(i+1))
		s.released = released(s, at(i+1))
	}
	for i := range segs {
		segs[i].breath = aspiration(at(i-1), at(i-2), &segs[i])
	}
}

// variant returns the phone that s becomes between its neighbours: a dark l, an r after a vowel, the flap of "water".
func variant(prev, s, next *segment) phone {
	switch s.ph {
	case phL:
		if !s.onset && (!next.ph.isVowel() || s.wordEnd) {
			return phLX
		}
	case phR:
		if !s.onset && prev.ph.isVowel() && (!next.ph.isVowel() || s.wordEnd) {
			return phRX
		}
	case phT, phD:
		between := (prev.ph.isVowel() || prev.ph == phRX) && next.ph.isVowel()
		if between && next.stress == 0 && !s.wordStart && !s.wordEnd {
			return phDX
		}
	}
	return s.ph
}

func released(s, next *segment) bool {
	this, after := s.ph.info(), next.ph.info()
	if this.kind != stop {
		return false
	}
	switch after.kind {
	case nasal:
		return false
	case stop, affricate:
		return after.place != this.place && !s.wordEnd
	}
	return true
}

// aspiration returns for how many ms a sound is breathy because of the preceding stop prev.
func aspiration(prev, before, s *segment) float64 {
	p := prev.ph.info()
	if !s.ph.info().voiced || s.ph.obstruent() || s.ph.info().kind == nasal {
		return 0
	}
	if prev.ph == phCH {
		return 10
	}
	if p.kind != stop || p.voiced || !prev.released {
		return 0
	}
	if before.ph == phS && prev.onset {
		return 5
	}
	ms := 18.0
	if prev.onset && (s.stress > 0 || prev.wordStart) {
		ms = map[phone]float64{phP: 35, phT: 42, phK: 45}[prev.ph]
	}
	if s.ph.info().kind == glide {
		ms += 15
	}
	return ms
}

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
	last, accents := p.first, 0.0
	for i := p.first; i < p.last; i++ {
		s := &t.segs[i]
		if !s.ph.isVowel() || s.stress != 1 {
			continue
		}
		height := lively * accent * math.Pow(0.88, accents)
		if accents == 0 {
			height *= 1.2
		}
		for k := frameAt(t.start[i] - 30); k < frameAt(t.start[i+1]-0.25*s.dur); k++ {
			steps[k] += height
		}
		accents++
		last = i
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
