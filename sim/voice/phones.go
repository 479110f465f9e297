package voice

import "math"

// phone is an index of phoneTable; the zero phone is silence.
type phone uint8

var phoneTable []phoneInfo

func define(p phoneInfo) phone {
	phoneTable = append(phoneTable, p)
	return phone(len(phoneTable) - 1)
}

type kind uint8

const (
	silence kind = iota
	vowel
	glide // w, y, r, l: vowel-like, with slow transitions
	nasal
	fricative
	stop
	affricate
	aspirate // h
	flap
)

// formants are the first three formant frequencies, or their bandwidths, in Hz.
type formants [3]float64

type phoneInfo struct {
	name   string
	kind   kind
	voiced bool
	place  place
	// inherent and least are the durations in ms of D. H. Klatt's rules (Klatt
	// 1979, "Synthesis by rule of segmental durations in English sentences").
	inherent, least float64
	// from and to are formant targets at the beginning and the end; they differ in diphthongs. bw are bandwidths.
	from, to, bw formants
	// voice is the level of voicing in dB relative to a stressed vowel.
	voice float64
	// noise is the frication; noiseDB is its level, again relative to a stressed vowel.
	noise   *spectrum
	noiseDB float64
}

// place is where in the mouth a consonant is made. It determines the locus towards
// which the formants of its neighbours bend.
type place uint8

const (
	noPlace place = iota
	labial
	dental
	alveolar
	palatal
	velar
)

// The phones with their targets. Vowel formants follow the means of adult male speakers of G. E. Peterson and H. L.
// Barney (1952), "Control methods used in a study of the vowels", and, for diphthongs, bandwidths and consonants, the
// tables of D. H. Klatt (1980), "Software for a cascade/parallel formant synthesizer", J. Acoust. Soc. Am. 67, with
// changes found by listening and by recognition tests.
var (
	phSil = define(phoneInfo{name: "_", from: formants{500, 1500, 2500}, to: formants{500, 1500, 2500}, bw: formants{60, 90, 150}})

	phIY  = vowelOf("IY", 155, 55, formants{300, 2200, 2960}, formants{280, 2270, 3010}, formants{50, 120, 260})
	phIH  = vowelOf("IH", 135, 40, formants{400, 1950, 2560}, formants{430, 1850, 2560}, formants{50, 100, 140})
	phEY  = vowelOf("EY", 190, 100, formants{480, 1800, 2520}, formants{330, 2150, 2650}, formants{65, 100, 180})
	phEH  = vowelOf("EH", 150, 70, formants{540, 1780, 2480}, formants{570, 1700, 2480}, formants{60, 90, 180})
	phAE  = vowelOf("AE", 230, 80, formants{680, 1740, 2430}, formants{690, 1600, 2420}, formants{70, 120, 240})
	phAA  = vowelOf("AA", 240, 100, formants{730, 1120, 2480}, formants{720, 1160, 2480}, formants{100, 80, 160})
	phAO  = vowelOf("AO", 240, 100, formants{590, 880, 2450}, formants{620, 960, 2480}, formants{90, 90, 110})
	phAH  = vowelOf("AH", 140, 60, formants{630, 1220, 2450}, formants{630, 1240, 2450}, formants{80, 70, 140})
	phOW  = vowelOf("OW", 220, 80, formants{540, 1060, 2350}, formants{400, 830, 2300}, formants{75, 80, 110})
	_     = vowelOf("UH", 160, 60, formants{450, 1080, 2280}, formants{470, 1140, 2300}, formants{70, 90, 110})
	phUW  = vowelOf("UW", 210, 70, formants{330, 1150, 2240}, formants{310, 920, 2220}, formants{60, 100, 140})
	phER  = vowelOf("ER", 180, 80, formants{480, 1300, 1650}, formants{460, 1320, 1640}, formants{80, 70, 110})
	phAX  = vowelOf("AX", 120, 60, formants{520, 1400, 2480}, formants{520, 1400, 2480}, formants{80, 80, 150})
	phIX  = vowelOf("IX", 110, 40, formants{420, 1720, 2520}, formants{420, 1720, 2520}, formants{60, 100, 150})
	phAXR = vowelOf("AXR", 130, 70, formants{480, 1320, 1700}, formants{460, 1330, 1660}, formants{80, 70, 120})
	phAY  = vowelOf("AY", 250, 150, formants{700, 1200, 2500}, formants{400, 2000, 2550}, formants{85, 80, 190})
	phAW  = vowelOf("AW", 260, 100, formants{700, 1270, 2500}, formants{430, 930, 2350}, formants{80, 75, 140})
	phOY  = vowelOf("OY", 280, 150, formants{540, 900, 2400}, formants{370, 1950, 2480}, formants{70, 70, 140})

	phW  = sonorantOf("W", glide, labial, 80, 60, -4, formants{300, 610, 2200}, formants{300, 620, 2200}, formants{50, 80, 80})
	phY  = sonorantOf("Y", glide, palatal, 80, 40, -4, formants{270, 2200, 3000}, formants{270, 2200, 3000}, formants{40, 200, 350})
	phR  = sonorantOf("R", glide, alveolar, 80, 40, -4, formants{320, 1080, 1450}, formants{320, 1080, 1450}, formants{70, 100, 120})
	phL  = sonorantOf("L", glide, alveolar, 80, 40, -5, formants{330, 1050, 2800}, formants{330, 1050, 2800}, formants{55, 100, 250})
	phLX = sonorantOf("LX", glide, alveolar, 90, 50, -3, formants{450, 820, 2650}, formants{430, 800, 2700}, formants{60, 100, 200})
	phRX = sonorantOf("RX", glide, alveolar, 90, 50, -2, formants{470, 1250, 1700}, formants{450, 1300, 1650}, formants{75, 80, 120})

	phM  = sonorantOf("M", nasal, labial, 70, 60, 0, formants{450, 1200, 2150}, formants{450, 1200, 2150}, formants{100, 250, 250})
	phN  = sonorantOf("N", nasal, alveolar, 70, 60, 0, formants{450, 1500, 2500}, formants{450, 1500, 2500}, formants{100, 300, 300})
	phNG = sonorantOf("NG", nasal, velar, 95, 60, 0, formants{450, 2000, 2700}, formants{450, 2000, 2700}, formants{100, 300, 300})

	phF  = consonantOf("F", fricative, false, labial, 100, 80, 0, noiseF, -25)
	phV  = consonantOf("V", fricative, true, labial, 60, 40, -8, noiseF, -34)
	phTH = consonantOf("TH", fricative, false, dental, 90, 60, 0, noiseTH, -28)
	phDH = consonantOf("DH", fricative, true, dental, 50, 30, -7, noiseTH, -42)
	phS  = consonantOf("S", fricative, false, alveolar, 105, 60, 0, noiseS, -13)
	phZ  = consonantOf("Z", fricative, true, alveolar, 75, 40, -12, noiseS, -18)
	phSH = consonantOf("SH", fricative, false, palatal, 105, 80, 0, noiseSH, -11)
	phZH = consonantOf("ZH", fricative, true, palatal, 70, 40, -12, noiseSH, -17)

	phHH = consonantOf("HH", aspirate, false, noPlace, 80, 30, 0, nil, 0)

	phP  = consonantOf("P", stop, false, labial, 90, 50, 0, noiseP, -20)
	phB  = consonantOf("B", stop, true, labial, 85, 60, 0, noiseP, -22)
	phT  = consonantOf("T", stop, false, alveolar, 75, 50, 0, noiseT, -12)
	phD  = consonantOf("D", stop, true, alveolar, 75, 50, 0, noiseT, -16)
	phK  = consonantOf("K", stop, false, velar, 80, 60, 0, noiseK, -12)
	phG  = consonantOf("G", stop, true, velar, 80, 60, 0, noiseK, -15)
	phCH = consonantOf("CH", affricate, false, palatal, 130, 90, 0, noiseSH, -11)
	phJH = consonantOf("JH", affricate, true, palatal, 100, 70, 0, noiseSH, -14)
	phDX = consonantOf("DX", flap, true, alveolar, 25, 20, -10, nil, 0)
)

func vowelOf(name string, inherent, least float64, from, to, bw formants) phone {
	return sonorantOf(name, vowel, noPlace, inherent, least, 0, from, to, bw)
}

func sonorantOf(name string, k kind, at place, inherent, least, voice float64, from, to, bw formants) phone {
	return define(phoneInfo{name, k, true, at, inherent, least, from, to, bw, voice, nil, 0})
}

func consonantOf(name string, k kind, voiced bool, at place, inherent, least, voice float64, noise *spectrum, noiseDB float64) phone {
	return define(phoneInfo{name: name, kind: k, voiced: voiced, place: at, inherent: inherent, least: least, voice: voice,
		noise: noise, noiseDB: noiseDB})
}

func (p phone) info() *phoneInfo { return &phoneTable[p] }

func (p phone) isVowel() bool { return phoneTable[p].kind == vowel }

func (p phone) obstruent() bool {
	k := phoneTable[p].kind
	return k == fricative || k == stop || k == affricate
}

// band is one band of a frication spectrum. If follow is 2 or 3, the frequency is that of the formant, as for the
// cavity in front of the closure, instead of freq.
type band struct {
	freq, width float64 // Hz
	gain        float64
	follow      int
}

// spectrum shapes white noise into a fricative or the burst of a stop: bands in parallel, and the noise itself past
// them.
type spectrum struct {
	bands  [3]band
	bypass float64 // gain
}

// quiet is a level in dB: practically absent.
const quiet = -90

var (
	noiseF  = newSpectrum(-3, band{1300, 1000, -3, 0}, band{3000, 2500, -2, 0}, band{6500, 2500, 0, 0})
	noiseTH = newSpectrum(-4, band{1500, 1000, -6, 0}, band{3500, 2000, -3, 0}, band{6500, 2500, 0, 0})
	noiseS  = newSpectrum(quiet, band{4700, 700, -3, 0}, band{5800, 1000, 0, 0}, band{7000, 1200, 0, 0})
	noiseSH = newSpectrum(quiet, band{2600, 450, 0, 0}, band{3500, 600, -1, 0}, band{4900, 1000, -6, 0})
	noiseP  = newSpectrum(-14, band{700, 700, 0, 0}, band{1600, 1200, -5, 0}, band{3500, 2500, -10, 0})
	noiseT  = newSpectrum(-24, band{2700, 700, -14, 0}, band{3900, 900, 0, 0}, band{5500, 1500, -1, 0})
	noiseK  = newSpectrum(-30, band{2000, 300, 0, 2}, band{2700, 500, -8, 3}, band{4200, 1200, -14, 0})
)

// newSpectrum makes a spectrum from relative levels in dB, scaled to the same power as the others. Neighbouring bands
// have opposite signs.
func newSpectrum(bypass float64, bands ...band) *spectrum {
	s := &spectrum{bypass: db(bypass)}
	power := s.bypass * s.bypass
	for i, b := range bands {
		b.gain = db(b.gain)
		power += b.gain * b.gain
		s.bands[i] = b
	}
	scale := 1 / math.Sqrt(power)
	s.bypass *= scale
	for i := range s.bands {
		s.bands[i].gain *= scale
		scale = -scale
	}
	return s
}
