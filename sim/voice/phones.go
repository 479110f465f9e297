package voice

type phone uint8

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
	// noise names the frication spectrum; noiseDB is its level, again relative to a stressed vowel.
	noise   noiseKind
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

// Indices of the phones that the code names, in the order of phoneTable.
const (
	phSil phone = iota
	phIY
	phIH
	phEY
	phEH
	phAE
	phAA
	phAO
	phAH
	phOW
	phUH
	phUW
	phER
	phAX
	phIX
	phAXR
	phAY
	phAW
	phOY
	phW
	phY
	phR
	phL
	phLX // l after a vowel
	phRX // r after a vowel
	phM
	phN
	phNG
	phF
	phV
	phTH
	phDH
	phS
	phZ
	phSH
	phZH
	phHH
	phP
	phB
	phT
	phD
	phK
	phG
	phCH
	phJH
	phDX // t or d between vowels, as in "water"
	phoneCount
)

// phoneTable holds the targets. Vowel formants follow the means of adult male speakers of G. E. Peterson and H. L.
// Barney (1952), "Control methods used in a study of the vowels", and, for diphthongs, bandwidths and consonants, the
// tables of D. H. Klatt (1980), "Software for a cascade/parallel formant synthesizer", J. Acoust. Soc. Am. 67, with
// changes found by listening and by recognition tests.
var phoneTable = [phoneCount]phoneInfo{
	phSil: {name: "_", kind: silence, from: formants{500, 1500, 2500}, to: formants{500, 1500, 2500}, bw: formants{60, 90, 150}},

	phIY:  vowelOf("IY", 155, 55, formants{300, 2200, 2960}, formants{280, 2270, 3010}, formants{50, 120, 260}),
	phIH:  vowelOf("IH", 135, 40, formants{400, 1950, 2560}, formants{430, 1850, 2560}, formants{50, 100, 140}),
	phEY:  vowelOf("EY", 190, 100, formants{480, 1800, 2520}, formants{330, 2150, 2650}, formants{65, 100, 180}),
	phEH:  vowelOf("EH", 150, 70, formants{540, 1780, 2480}, formants{570, 1700, 2480}, formants{60, 90, 180}),
	phAE:  vowelOf("AE", 230, 80, formants{680, 1740, 2430}, formants{690, 1600, 2420}, formants{70, 120, 240}),
	phAA:  vowelOf("AA", 240, 100, formants{730, 1120, 2480}, formants{720, 1160, 2480}, formants{100, 80, 160}),
	phAO:  vowelOf("AO", 240, 100, formants{590, 880, 2450}, formants{620, 960, 2480}, formants{90, 90, 110}),
	phAH:  vowelOf("AH", 140, 60, formants{630, 1220, 2450}, formants{630, 1240, 2450}, formants{80, 70, 140}),
	phOW:  vowelOf("OW", 220, 80, formants{540, 1060, 2350}, formants{400, 830, 2300}, formants{75, 80, 110}),
	phUH:  vowelOf("UH", 160, 60, formants{450, 1080, 2280}, formants{470, 1140, 2300}, formants{70, 90, 110}),
	phUW:  vowelOf("UW", 210, 70, formants{330, 1150, 2240}, formants{310, 920, 2220}, formants{60, 100, 140}),
	phER:  vowelOf("ER", 180, 80, formants{480, 1300, 1650}, formants{460, 1320, 1640}, formants{80, 70, 110}),
	phAX:  vowelOf("AX", 120, 60, formants{520, 1400, 2480}, formants{520, 1400, 2480}, formants{80, 80, 150}),
	phIX:  vowelOf("IX", 110, 40, formants{420, 1720, 2520}, formants{420, 1720, 2520}, formants{60, 100, 150}),
	phAXR: vowelOf("AXR", 130, 70, formants{480, 1320, 1700}, formants{460, 1330, 1660}, formants{80, 70, 120}),
	phAY:  vowelOf("AY", 250, 150, formants{700, 1200, 2500}, formants{400, 2000, 2550}, formants{85, 80, 190}),
	phAW:  vowelOf("AW", 260, 100, formants{700, 1270, 2500}, formants{430, 930, 2350}, formants{80, 75, 140}),
	phOY:  vowelOf("OY", 280, 150, formants{540, 900, 2400}, formants{370, 1950, 2480}, formants{70, 70, 140}),

	phW:  sonorantOf("W", glide, labial, 80, 60, -4, formants{300, 610, 2200}, formants{300, 620, 2200}, formants{50, 80, 80}),
	phY:  sonorantOf("Y", glide, palatal, 80, 40, -4, formants{270, 2200, 3000}, formants{270, 2200, 3000}, formants{40, 200, 350}),
	phR:  sonorantOf("R", glide, alveolar, 80, 40, -4, formants{320, 1080, 1450}, formants{320, 1080, 1450}, formants{70, 100, 120}),
	phL:  sonorantOf("L", glide, alveolar, 80, 40, -5, formants{330, 1050, 2800}, formants{330, 1050, 2800}, formants{55, 100, 250}),
	phLX: sonorantOf("LX", glide, alveolar, 90, 50, -3, formants{450, 820, 2650}, formants{430, 800, 2700}, formants{60, 100, 200}),
	phRX: sonorantOf("RX", glide, alveolar, 90, 50, -2, formants{470, 1250, 1700}, formants{450, 1300, 1650}, formants{75, 80, 120}),

	phM:  sonorantOf("M", nasal, labial, 70, 60, 0, formants{450, 1200, 2150}, formants{450, 1200, 2150}, formants{100, 250, 250}),
	phN:  sonorantOf("N", nasal, alveolar, 70, 60, 0, formants{450, 1500, 2500}, formants{450, 1500, 2500}, formants{100, 300, 300}),
	phNG: sonorantOf("NG", nasal, velar, 95, 60, 0, formants{450, 2000, 2700}, formants{450, 2000, 2700}, formants{100, 300, 300}),

	phF:  {name: "F", kind: fricative, place: labial, inherent: 100, least: 80, noise: noiseF, noiseDB: -25},
	phV:  {name: "V", kind: fricative, voiced: true, place: labial, inherent: 60, least: 40, voice: -8, noise: noiseF, noiseDB: -34},
	phTH: {name: "TH", kind: fricative, place: dental, inherent: 90, least: 60, noise: noiseTH, noiseDB: -28},
	phDH: {name: "DH", kind: fricative, voiced: true, place: dental, inherent: 50, least: 30, voice: -7, noise: noiseTH, noiseDB: -42},
	phS:  {name: "S", kind: fricative, place: alveolar, inherent: 105, least: 60, noise: noiseS, noiseDB: -13},
	phZ:  {name: "Z", kind: fricative, voiced: true, place: alveolar, inherent: 75, least: 40, voice: -12, noise: noiseS, noiseDB: -18},
	phSH: {name: "SH", kind: fricative, place: palatal, inherent: 105, least: 80, noise: noiseSH, noiseDB: -11},
	phZH: {name: "ZH", kind: fricative, voiced: true, place: palatal, inherent: 70, least: 40, voice: -12, noise: noiseSH, noiseDB: -17},

	phHH: {name: "HH", kind: aspirate, inherent: 80, least: 30},

	phP:  {name: "P", kind: stop, place: labial, inherent: 90, least: 50, noise: noiseP, noiseDB: -20},
	phB:  {name: "B", kind: stop, voiced: true, place: labial, inherent: 85, least: 60, noise: noiseP, noiseDB: -22},
	phT:  {name: "T", kind: stop, place: alveolar, inherent: 75, least: 50, noise: noiseT, noiseDB: -12},
	phD:  {name: "D", kind: stop, voiced: true, place: alveolar, inherent: 75, least: 50, noise: noiseT, noiseDB: -16},
	phK:  {name: "K", kind: stop, place: velar, inherent: 80, least: 60, noise: noiseK, noiseDB: -12},
	phG:  {name: "G", kind: stop, voiced: true, place: velar, inherent: 80, least: 60, noise: noiseK, noiseDB: -15},
	phCH: {name: "CH", kind: affricate, place: palatal, inherent: 130, least: 90, noise: noiseSH, noiseDB: -11},
	phJH: {name: "JH", kind: affricate, voiced: true, place: palatal, inherent: 100, least: 70, noise: noiseSH, noiseDB: -14},
	phDX: {name: "DX", kind: flap, voiced: true, place: alveolar, inherent: 25, least: 20, voice: -10},
}

func vowelOf(name string, inherent, least float64, from, to, bw formants) phoneInfo {
	return phoneInfo{name: name, kind: vowel, voiced: true, inherent: inherent, least: least, from: from, to: to, bw: bw}
}

func sonorantOf(name string, k kind, at place, inherent, least, voice float64, from, to, bw formants) phoneInfo {
	return phoneInfo{name, k, true, at, inherent, least, from, to, bw, voice, noNoise, 0}
}

func (p phone) info() *phoneInfo { return &phoneTable[p] }

func (p phone) isVowel() bool { return phoneTable[p].kind == vowel }

func (p phone) obstruent() bool {
	k := phoneTable[p].kind
	return k == fricative || k == stop || k == affricate
}

type noiseKind uint8

const (
	noNoise noiseKind = iota
	noiseF
	noiseTH
	noiseS
	noiseSH
	noiseP
	noiseT
	noiseK
	noiseKinds
)

// band is one band of a frication spectrum. If follow is 2 or 3, the frequency is that of the formant, as for the
// cavity in front of the closure, instead of freq.
type band struct {
	freq, width float64 // Hz
	level       float64 // dB within the spectrum
	follow      int
}

// noiseSpectrum shapes white noise into a fricative or the burst of a stop:
// bands in parallel, and the noise itself past them at the level bypass (dB).
type noiseSpectrum struct {
	bands  [noiseBands]band
	bypass float64
}

const (
	noiseBands = 3
	quiet      = -90 // dB: practically absent
)

// noiseTable holds the spectra. Levels are relative: each spectrum is scaled
// to the same power before the level of its phone applies.
var noiseTable = [noiseKinds]noiseSpectrum{
	noNoise: {bands: [noiseBands]band{{3000, 1000, quiet, 0}, {4000, 1000, quiet, 0}, {5000, 1000, quiet, 0}}, bypass: quiet},
	noiseF:  {bands: [noiseBands]band{{1300, 1000, -3, 0}, {3000, 2500, -2, 0}, {6500, 2500, 0, 0}}, bypass: -3},
	noiseTH: {bands: [noiseBands]band{{1500, 1000, -6, 0}, {3500, 2000, -3, 0}, {6500, 2500, 0, 0}}, bypass: -4},
	noiseS:  {bands: [noiseBands]band{{4700, 700, -3, 0}, {5800, 1000, 0, 0}, {7000, 1200, 0, 0}}, bypass: quiet},
	noiseSH: {bands: [noiseBands]band{{2600, 450, 0, 0}, {3500, 600, -1, 0}, {4900, 1000, -6, 0}}, bypass: quiet},
	noiseP:  {bands: [noiseBands]band{{700, 700, 0, 0}, {1600, 1200, -5, 0}, {3500, 2500, -10, 0}}, bypass: -14},
	noiseT:  {bands: [noiseBands]band{{2700, 700, -14, 0}, {3900, 900, 0, 0}, {5500, 1500, -1, 0}}, bypass: -24},
	noiseK:  {bands: [noiseBands]band{{2000, 300, 0, 2}, {2700, 500, -8, 3}, {4200, 1200, -14, 0}}, bypass: -30},
}
