package audio

// A noiseFloor follows the level of the background, in dB, by its minimum over
// the last floorSpans*spanFrames frames (R. Martin, "Noise power spectral
// density estimation based on optimal smoothing and minimum statistics", 2001,
// in its simplest form): speech has dips in every second, noise does not.
type noiseFloor struct {
	level float64 // the estimate

	smooth float64 // the level, smoothed over about 40 ms
	spans  [floorSpans]float64
	span   int // index in spans of the current one
	frames int // in the current span
}

const (
	floorSpans = 8
	spanFrames = 20

	// quietRoom is assumed until enough audio was processed; a voice that is there from
	// the first sample is not taken for the background.
	quietRoom = -60.0
	minFloor  = -70.0
	maxFloor  = -20.0

	// floorBias is how far the minimum of a smoothed noise is below its mean.
	floorBias = 1.0
	// slowRise is how fast the floor rises above the ceiling of update, in dB a
	// frame: a vowel may be held for nine seconds, and louder noise that begins
	// during speech is recognised in the end.
	slowRise = 0.02
)

func (f *noiseFloor) reset() {
	*f = noiseFloor{level: quietRoom, smooth: quietRoom}
	for i := range f.spans {
		f.spans[i] = quietRoom
	}
}

// update processes the level of one more frame. Up to ceiling the estimate may jump,
// above it only creep.
func (f *noiseFloor) update(level, ceiling float64) {
	f.smooth += (level - f.smooth) * 0.25
	if f.frames == 0 || f.smooth < f.spans[f.span] {
		f.spans[f.span] = f.smooth
	}
	if f.frames++; f.frames == spanFrames {
		f.frames, f.span = 0, (f.span+1)%floorSpans
	}
	lowest := f.smooth
	for _, v := range f.spans {
		if v < lowest { // cheaper than min, and nothing here is NaN
			lowest = v
		}
	}
	next := min(max(lowest+floorBias, minFloor), maxFloor)
	f.level = min(next, max(ceiling, f.level+slowRise))
}
