package voice

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
