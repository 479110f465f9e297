package audio

// Frames and defaults of a Detector.
const (
	frameMS = 10

	defaultDetectorRate = 16000
	defaultPrefixMS     = 300
	defaultSilenceMS    = 500
	defaultMinSpeechMS  = 60
	defaultThreshold    = 0.5
)

// DetectorOptions say how a Detector decides. The zero value is usable.
type DetectorOptions struct {
	// Rate of the PCM in Hz, 8000 to 192000; others are taken to the nearer
	// of the two. Zero means 16000.
	Rate int
	// PrefixMS is how much earlier than the onset a start is reported, so that
	// a listener who begins there misses nothing. Zero means 300, negative
	// means none.
	PrefixMS int
	// SilenceMS is how long speech must have ceased for a stop. Zero means 500.
	SilenceMS int
	// MinSpeechMS is how long a sound must last to be speech, rounded up to
	// 10 ms, at most 200. It is also the delay of the decision. Zero means 60.
	MinSpeechMS int
	// Threshold is how much a sound must stand out, from 0 to 1, like the
	// threshold of OpenAI's server_vad: higher needs louder speech. Zero means
	// 0.5, where speech stands 12 dB above the background and above -50 dBFS;
	// each 0.1 moves both by 2 dB.
	Threshold float64
}

// Activity is a change between silence and speech. Its times are milliseconds
// of audio since the first sample.
type Activity struct {
	// Started is true where speech begins, false where it ends.
	Started bool
	// EdgeMS is where the sound itself begins or ends.
	EdgeMS int64
	// ReportMS is what a provider reports: the onset less PrefixMS, but not
	// below 0, or the end plus SilenceMS.
	ReportMS int64
	// AtMS is how much audio had been heard when the decision fell.
	AtMS int64
}

// withDefaults returns the options with zero values replaced and the rest
// brought into range.
func (o DetectorOptions) withDefaults() DetectorOptions {
	o.Rate = orDefault(o.Rate, defaultDetectorRate)
	o.Rate = min(max(o.Rate, minRate), maxRate)
	o.PrefixMS = max(orDefault(o.PrefixMS, defaultPrefixMS), 0)
	o.SilenceMS = max(orDefault(o.SilenceMS, defaultSilenceMS), frameMS)
	o.MinSpeechMS = min(max(orDefault(o.MinSpeechMS, defaultMinSpeechMS), frameMS), maxRunFrames*frameMS)
	if o.Threshold == 0 {
		o.Threshold = defaultThreshold
	}
	o.Threshold = min(max(o.Threshold, 0), 1)
	return o
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// What the decision is made of. Levels are of frames behind the high-pass of
// frameMeter, in dB.
const (
	// Above the background by startMargin and over minStartLevel, both at
	// Threshold 0.5, a frame is loud; thresholdSpan is what the whole range of
	// Threshold adds.
	startMargin   = 12.0
	minStartLevel = -50.0
	thresholdSpan = 20.0
	// Once started, this much less keeps speech going.
	stopMargin = 6.0

	// A half of the frames must have a pitch, or a third if one of them is this
	// far above what is loud.
	clearMargin = 15.0

	// A frame counts only if it is not further below an earlier one of the
	// run: a knock is loud, too, but it dies away.
	maxDecay = 9.0

	// maxRunFrames is how far back a start can look, and the longest
	// MinSpeechMS.
	maxRunFrames = 20
	// maxGapFrames may be quiet within the onset, as between a plosive and its
	// vowel.
	maxGapFrames = 2
	// slackFrames of the onset's window need not count.
	slackFrames = 1
	// keepFrames in a row must be loud to keep speech going: a click in the
	// silence does not.
	keepFrames = 3

	// voiceMargin is how far below the voice the background may be found while
	// there is a voice; peakDecay, in dB a frame, is how fast the voice's level
	// follows a speaker who turns away.
	voiceMargin = 25.0
	peakDecay   = 0.05
)

// Detector finds speech in one stream of PCM. It counts samples and knows no
// other clock, so that the same audio gives the same answers however fast it
// arrives and however it is cut.
//
// It works on frames of 10 ms. Speech begins where frames stand out from an
// adaptive noise floor for MinSpeechMS without dying away, and a voice's pitch
// is found in them; this leaves out clicks, knocks, hum and steady noise, and
// whispering too. It ends when nothing stands out for SilenceMS.
//
// A Detector belongs to one goroutine at a time.
type Detector struct {
	// Fixed after NewDetector.
	opt       DetectorOptions
	frame     int     // samples of one frame
	need      int     // frames that must count for a start
	margin    float64 // startMargin and minStartLevel at this Threshold
	minLevel  float64
	quietSize int // frames of silence that end speech

	// Owned by the caller of Process.
	meter  frameMeter
	floor  noiseFloor
	frames int64  // complete ones so far
	part   []byte // of the next frame; nil until audio comes in other pieces than frames
	found  []Activity

	talking bool
	// Silent: the last frames, newest at index frames%maxRunFrames.
	recent [maxRunFrames]frameMark
	// Talking: the loud frames in a row up to now, and the end of the last one
	// that kept speech going, in frames.
	loudRun int
	lastEnd int64
	// peak is the level of the voice: the loudest frame, forgotten slowly.
	peak float64
}

// frameMark is what an onset needs to know about a past frame.
type frameMark struct {
	level float64
	loud  bool
	pitch bool
}

// NewDetector returns a Detector that has heard nothing.
func NewDetector(opt DetectorOptions) *Detector {
	opt = opt.withDefaults()
	frame := opt.Rate * frameMS / 1000
	shift := (opt.Threshold - defaultThreshold) * thresholdSpan
	d := &Detector{
		opt:       opt,
		frame:     frame,
		need:      (opt.MinSpeechMS + frameMS - 1) / frameMS,
		margin:    startMargin + shift,
		minLevel:  minStartLevel + shift,
		quietSize: (opt.SilenceMS*opt.Rate + 1000*frame - 1) / (1000 * frame),
	}
	d.Reset()
	return d
}

// Reset forgets everything heard. The clock begins at 0 again.
func (d *Detector) Reset() {
	d.meter.reset(d.opt.Rate, d.frame)
	d.floor.reset()
	d.frames, d.part, d.found, d.talking = 0, d.part[:0], d.found[:0], false
	d.recent = [maxRunFrames]frameMark{}
	d.loudRun, d.lastEnd, d.peak = 0, 0, MinLevel
}

// Speaking tells whether speech has started and not ended.
func (d *Detector) Speaking() bool { return d.talking }

// ClockMS returns how much audio was heard, in whole milliseconds.
func (d *Detector) ClockMS() int64 {
	return (d.frames*int64(d.frame) + int64(len(d.part)/BytesPerSample)) * 1000 / int64(d.opt.Rate)
}

// Process hears pcm, any whole number of samples, and returns what it decided
// in it, in order. The slice is valid until the next call. A trailing half
// sample is ignored. It allocates nothing in the steady state.
func (d *Detector) Process(pcm []byte) []Activity {
	d.found = d.found[:0]
	pcm = pcm[:len(pcm)&^1]
	size := d.frame * BytesPerSample
	if len(d.part) > 0 {
		n := min(len(pcm), size-len(d.part))
		d.part, pcm = append(d.part, pcm[:n]...), pcm[n:]
		if len(d.part) < size {
			return d.found
		}
		d.hear(d.part)
		d.part = d.part[:0]
	}
	for ; len(pcm) >= size; pcm = pcm[size:] {
		d.hear(pcm[:size])
	}
	d.part = append(d.part, pcm...)
	return d.found
}

// hear takes one frame of PCM.
func (d *Detector) hear(frame []byte) {
	level := d.meter.measure(frame)
	d.decide(level, !d.talking && level > d.threshold() && d.meter.pitched())
	d.floor.update(level, d.ceiling())
}

// decide judges one frame. Whether a voice's pitch is in it counts only where it is loud and
// nobody talks yet.
func (d *Detector) decide(level float64, pitched bool) {
	d.frames++
	if d.talking {
		d.listenForEnd(level)
		return
	}
	m := frameMark{level: level, loud: level > d.threshold(), pitch: pitched}
	d.recent[d.frames%maxRunFrames] = m
	if m.loud {
		d.listenForStart()
	}
}

// listenForStart looks back from a loud frame.
func (d *Detector) listenForStart() {
	window := d.need + slackFrames
	counted, pitched, top := 0, 0, MinLevel
	for i := range window {
		m := d.ago(i)
		if m.loud && !d.decaying(i, window) {
			counted++
			top = max(top, m.level)
			if m.pitch {
				pitched++
			}
		}
	}
	// Noise has a pitch by chance now and then. What is loud enough to
	// interrupt for needs less proof.
	parts := 2
	if top > d.threshold()+clearMargin {
		parts = 3
	}
	if counted < d.need || pitched*parts < d.need {
		return
	}
	// The edge is the first loud frame that this run of them reaches back to.
	first, gap := 0, 0
	for i := 0; i < maxRunFrames && int64(i) < d.frames && gap <= maxGapFrames; i++ {
		if d.ago(i).loud {
			first, gap = i, 0
		} else {
			gap++
		}
	}
	edge := d.ms(d.frames - 1 - int64(first))
	d.talking, d.loudRun, d.lastEnd = true, 0, d.frames
	d.peak = MinLevel
	for i := range first + 1 {
		d.peak = max(d.peak, d.ago(i).level)
	}
	d.recent = [maxRunFrames]frameMark{}
	d.report(Activity{Started: true, EdgeMS: edge, ReportMS: max(edge-int64(d.opt.PrefixMS), 0)})
}

// threshold is what a frame's level must exceed to be loud.
func (d *Detector) threshold() float64 { return max(d.floor.level+d.margin, d.minLevel) }

// decaying tells whether the frame i frames ago is far below one before it
// within the window.
func (d *Detector) decaying(i, window int) bool {
	level := d.ago(i).level
	for j := i + 1; j < window; j++ {
		if m := d.ago(j); m.loud && m.level-level > maxDecay {
			return true
		}
	}
	return false
}

// ago returns the frame i frames before the newest one, i below maxRunFrames.
func (d *Detector) ago(i int) *frameMark {
	return &d.recent[(d.frames-int64(i)+maxRunFrames)%maxRunFrames]
}

func (d *Detector) listenForEnd(level float64) {
	d.peak = max(d.peak-peakDecay, level)
	if level > d.threshold()-stopMargin {
		if d.loudRun++; d.loudRun >= keepFrames {
			d.lastEnd = d.frames
		}
		return
	}
	d.loudRun = 0
	if d.frames-d.lastEnd >= int64(d.quietSize) {
		d.talking = false
		edge := d.ms(d.lastEnd)
		d.report(Activity{EdgeMS: edge, ReportMS: edge + int64(d.opt.SilenceMS)})
	}
}

// ceiling is what the floor may jump to: the voice itself, as in a long vowel,
// is not the background.
func (d *Detector) ceiling() float64 {
	if d.talking {
		return d.peak - voiceMargin
	}
	return maxFloor
}

// report adds an activity that was decided at the end of this frame.
func (d *Detector) report(a Activity) {
	a.AtMS = d.ms(d.frames)
	d.found = append(d.found, a)
}

// ms is the time at which n frames have passed.
func (d *Detector) ms(n int64) int64 { return n * int64(d.frame) * 1000 / int64(d.opt.Rate) }
