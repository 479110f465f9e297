package voice

import "math"

type segment struct {
	ph     phone
	stress uint8 // stress of its syllable: 0 none, 1 primary, 2 secondary
	chunk  int   // the written word it belongs to
	// wordStart and wordEnd mark the first and last phone of a spoken word.
	wordStart, wordEnd bool
	// onset marks a consonant before the vowel of its syllable.
	onset bool
	// released marks a stop that ends in a burst.
	released bool
	weak     bool // part of a weak word: the, of, ...
	// dur is the length in ms; breath is the part at its beginning, in ms, that is
	// still breath from the stop before it.
	dur, breath float64
}

// frame is the state of the vocal tract for frameMS. Amplitudes are linear; 1 is that of a stressed vowel.
type frame struct {
	f0       float64
	av, ah   float64 // voicing, aspiration
	af       float64 // frication
	noise    *spectrum
	tilt     float64 // corner of the source's low-pass in Hz
	f, bw    formants
	nose     float64 // how much of the sound goes through the nose, 0 to 1
	noseZero float64 // Hz: the frequency that the closed mouth absorbs
	nosePole float64 // Hz: the second resonance of the nose
}

const (
	frameMS      = 2.5
	modalTilt    = 8000.0
	voiceBarTilt = 220.0
)

type track struct {
	segs   []segment
	start  []float64 // ms, one more than segs
	frames []frame
}

func newTrack(segs []segment) *track {
	t := &track{segs: segs, start: make([]float64, len(segs)+1)}
	for i := range segs {
		t.start[i+1] = t.start[i] + segs[i].dur
	}
	t.frames = make([]frame, int(t.start[len(segs)]/frameMS))
	for i := range segs {
		t.move(i)
		t.excite(i)
	}
	t.smooth()
	return t
}

func (t *track) span(i int) []frame {
	n := len(t.frames)
	a, b := min(int(t.start[i]/frameMS), n), min(int(t.start[i+1]/frameMS), n)
	return t.frames[a:b]
}

func (t *track) at(i int) *segment {
	if i < 0 || i >= len(t.segs) {
		return &silentSegment
	}
	return &t.segs[i]
}

var silentSegment = segment{ph: phSil}

// targets returns the formant targets of segment i. A sound without a shape of
// its own, such as h, has its neighbour's targets.
func (t *track) targets(i int) (from, to, bw formants) {
	p := t.at(i).ph.info()
	if p.kind == aspirate {
		n := t.at(i + 1).ph.info()
		if n.from[0] != 0 {
			bw = n.bw
			bw[0] = 250
			return n.from, n.from, bw
		}
		p = phSil.info()
	}
	return p.from, p.to, p.bw
}

func (t *track) meet(i int) formants {
	a, b := t.at(i-1).ph.info(), t.at(i).ph.info()
	_, aTo, _ := t.targets(i - 1)
	bFrom, _, _ := t.targets(i)
	aShut, bShut := shut(a), shut(b)
	switch {
	case a.kind == silence && bShut:
		return t.meet(i + 1)
	case b.kind == silence && aShut:
		return t.meet(i - 1)
	case aShut && bShut:
		return between(locus(a.place, neutral), locus(b.place, neutral), 0.5)
	case aShut:
		if b.kind == silence {
			bFrom = neutral
		}
		return locus(a.place, bFrom)
	case bShut:
		return locus(b.place, aTo)
	case a.kind == silence || a.kind == aspirate:
		return bFrom
	case b.kind == silence || b.kind == aspirate:
		return aTo
	case a.kind == glide && b.kind != glide:
		return between(aTo, bFrom, 0.35)
	case b.kind == glide && a.kind != glide:
		return between(aTo, bFrom, 0.65)
	}
	return between(aTo, bFrom, 0.5)
}

var neutral = formants{500, 1450, 2500}

func shut(p *phoneInfo) bool {
	switch p.kind {
	case stop, affricate, fricative, nasal, flap:
		return true
	}
	return false
}

func between(a, b formants, x float64) formants {
	for i := range a {
		a[i] += (b[i] - a[i]) * x
	}
	return a
}

// locus returns where the formants of a vowel with target v begin when it follows a consonant of that place. F2 follows
// the locus equations in the manner of H. M. Sussman and others (1991, "An investigation of locus equations as a source
// of relational invariance for stop place categorization").
func locus(p place, v formants) formants {
	f1 := 0.25*v[0] + 190
	switch p {
	case labial:
		return formants{f1, 0.80*v[1] + 100, 0.80*v[2] + 300}
	case dental:
		return formants{f1, 0.55*v[1] + 580, 0.50*v[2] + 1280}
	case palatal:
		return formants{f1, 0.50*v[1] + 960, 0.50*v[2] + 1270}
	case velar:
		f2 := 0.80*v[1] + 480
		return formants{f1, f2, 0.5*v[2] + 0.5*(f2+380)}
	}
	return formants{f1, 0.45*v[1] + 980, 0.50*v[2] + 1330}
}

// transition returns how long, in ms, consonant p bends the formants of a neighbour.
func transition(p *phoneInfo) float64 {
	switch p.kind {
	case silence, aspirate:
		return 20
	case glide:
		return 75
	case vowel:
		return 80
	case fricative, affricate:
		return 55
	}
	switch p.place {
	case labial:
		return 45
	case velar:
		return 70
	}
	return 55
}

func (t *track) move(i int) {
	span := t.span(i)
	p := t.segs[i].ph.info()
	left, right := t.meet(i), t.meet(i+1)
	from, to, bw := t.targets(i)
	if shut(p) {
		t.moveShut(i, left, right)
		return
	}
	if p.kind == silence {
		from, to = left, right
		if t.at(i-1).ph == phSil {
			from = right
		}
		if t.at(i+1).ph == phSil {
			to = left
		}
		left, right = from, to
	}
	dur := t.segs[i].dur
	longest := 0.8 * dur
	inT := min(transition(t.at(i-1).ph.info()), longest)
	outT := min(transition(t.at(i+1).ph.info()), longest)
	diphthong := math.Abs(from[1]-to[1]) > 250
	for k := range span {
		x := (float64(k) + 0.5) * frameMS
		y := x / dur
		if diphthong {
			y = ramp((y - 0.2) / 0.7)
		}
		fr := &span[k]
		wl, wr := 1-ramp(x/inT), 1-ramp((dur-x)/outT)
		for j := range fr.f {
			base := from[j] + (to[j]-from[j])*y
			fr.f[j] = base + (left[j]-from[j])*wl + (right[j]-to[j])*wr
		}
		fr.bw = bw
	}
	t.nasalize(i, span)
}

func (t *track) moveShut(i int, left, right formants) {
	span := t.span(i)
	p := t.segs[i].ph.info()
	for k := range span {
		fr := &span[k]
		fr.f = between(left, right, ramp((float64(k)+0.5)/float64(len(span))))
		fr.bw = formants{90, 120, 180}
		switch p.kind {
		case nasal:
			fr.nose = 1
			fr.noseZero, fr.nosePole = noseShape(p.place)
		case fricative, stop, affricate:
			if p.voiced {
				fr.f[0] = min(fr.f[0], 270)
			}
			fr.bw[0] = 120
		}
	}
}

// nasalize opens the nose a little in the part of a vowel that touches a nasal.
func (t *track) nasalize(i int, span []frame) {
	const reach = 24 // frames
	const most = 0.25
	n := len(span)
	if next := t.at(i + 1).ph.info(); next.kind == nasal {
		for k := max(0, n-reach); k < n; k++ {
			x := float64(reach-(n-k)+1) / reach
			span[k].nose = most * x
			span[k].noseZero, span[k].nosePole = noseShape(next.place)
			span[k].bw[0] += 40 * x
		}
	}
	if prev := t.at(i - 1).ph.info(); prev.kind == nasal {
		for k := 0; k < min(reach/2, n); k++ {
			x := 1 - float64(k)/(reach/2)
			span[k].nose = max(span[k].nose, most*x)
			span[k].noseZero, span[k].nosePole = noseShape(prev.place)
		}
	}
}

// noseShape returns the frequency in Hz that the mouth behind the closure absorbs, and
// the frequency of the second resonance.
func noseShape(p place) (zero, pole float64) {
	switch p {
	case labial:
		return 720, 1100
	case velar:
		return 1600, 1950
	}
	return 1250, 1750
}

// ramp goes smoothly from 0 at x=0 to 1 at x=1 and stays there.
func ramp(x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	return 0.5 - 0.5*math.Cos(math.Pi*x)
}
