package audio

import "cmp"

// The frame size and the defaults of a Detector.
const (
	frameMS = 10

	defaultDetectorRate = 16000
	defaultPrefixMS     = 300
	defaultSilenceMS    = 500
	defaultMinSpeechMS  = 60
	defaultThreshold    = 0.5
)

// DetectorOptions configure a Detector. The zero value is usable.
type DetectorOptions struct {
	// Rate of the PCM in Hz, 8000 to 192000; other rates are raised or lowered to the nearer bound. Zero means 16000.
	Rate int
	// PrefixMS is how much earlier than the onset a start is reported. Zero means 300, negative means 0.
	PrefixMS int
	// SilenceMS is how long silence must last for a stop. Zero means 500.
	SilenceMS int
	// MinSpeechMS is how long a sound must last, rounded up to 10 ms, at most 200; the decision's delay. Zero means 60.
	MinSpeechMS int
	// Threshold is how much a sound must stand out, from 0 to 1, like that of OpenAI's server_vad. Zero means 0.5: 12
	// dB above the background and above -50 dBFS; each 0.1 moves both by 2 dB.
	Threshold float64
	// SustainMS is how much sound speech must have before it is reported as Sustained, rounded up to 10 ms. A cough or
	// a short noise has less, and most of a cough has no pitch. Zero reports none.
	SustainMS int
}

// Activity is a change between silence and speech, or sustained speech. Times are ms of audio since the first sample.
type Activity struct {
	// Started is true if speech begins. If Started and Sustained are false, it ends.
	Started bool
	// Sustained is true if the speech has lasted for SustainMS: once at most, between the start and the end.
	Sustained bool
	// EdgeMS is when the sound itself begins or ends. If Sustained is set, it is the beginning.
	EdgeMS int64
	// ReportMS is a provider's position: the onset minus PrefixMS, at least 0, or the end plus SilenceMS. If
	// Sustained is set, it is EdgeMS.
	ReportMS int64
	// AtMS is how much audio had been processed when the decision was made.
	AtMS int64
}

// withDefaults returns the options with zero values replaced and the others brought into range.
func (o DetectorOptions) withDefaults() DetectorOptions {
	o.Rate = min(max(cmp.Or(o.Rate, defaultDetectorRate), MinRate), MaxRate)
	o.PrefixMS = max(cmp.Or(o.PrefixMS, defaultPrefixMS), 0)
	o.SilenceMS = max(cmp.Or(o.SilenceMS, defaultSilenceMS), frameMS)
	o.MinSpeechMS = min(max(cmp.Or(o.MinSpeechMS, defaultMinSpeechMS), frameMS), maxRunFrames*frameMS)
	o.Threshold = min(max(cmp.Or(o.Threshold, defaultThreshold), 0), 1)
	return o
}

// The parameters of the decision. Levels are of frames after the high-pass filter of frameMeter, in dB.
const (
	// A frame is loud startMargin above the background and over minStartLevel, plus thresholdSpan at the full Threshold.
	startMargin   = 12.0
	minStartLevel = -50.0
	thresholdSpan = 20.0
	// Once speech has started, a level that is lower by this much continues it.
	stopMargin = 6.0

	// FaintestSpeech is the level of the faintest speech that a Detector at Threshold 0.5 follows once it has started.
	FaintestSpeech = minStartLevel - stopMargin

	// Half of the frames must have a pitch, or a third if one of them is this far above the threshold.
	clearMargin = 15.0

	// A frame counts only if it is not further than this below an earlier one of the run: a knock dies away.
	maxDecay = 9.0

	// Sustained speech has a pitch in one of sustainPitch loud frames and no longer pause than sustainGap: unlike coughs.
	sustainPitch = 3
	sustainGap   = 15

	// maxRunFrames is how far a start can look back, and the longest MinSpeechMS.
	maxRunFrames = 20
	// maxGapFrames is how many frames within the onset may be quiet, as between a plosive and its vowel.
	maxGapFrames = 2
	// slackFrames is how many frames of the onset's window need not count.
	slackFrames = 1
	// keepFrames is how many frames in a row must be loud to continue speech: a click in the silence does not.
	keepFrames = 3

	// voiceMargin is the least distance of background and voice; peakDecay, in dB a frame, how fast the voice's level falls.
	voiceMargin = 25.0
	peakDecay   = 0.05
)

// Detector finds speech in one stream of PCM. Its only clock is the number of samples, so the same audio gives the
// same result at any speed and in any pieces.
//
// It works on frames of 10 ms. Speech begins if frames stand out from an adaptive noise floor for MinSpeechMS without
// dying away, and have the pitch of a voice. This excludes clicks, knocks, hum and steady noise, but whispering too.
// It ends when nothing stands out for SilenceMS.
//
// A Detector belongs to one goroutine at a time.
type Detector struct {
	// Fixed after NewDetector.
	opt       DetectorOptions
	frame     int     // samples of one frame
	need      int     // frames that must count to start speech
	margin    float64 // startMargin and minStartLevel at this Threshold
	minLevel  float64
	quietSize int // frames of silence that end speech
	sustain   int // frames of sound that make speech sustained; zero reports none

	// Owned by the caller of Process.
	meter  frameMeter
	floor  noiseFloor
	frames int64  // complete frames so far
	sound  int64  // the end of the last frame that may belong to speech, in frames
	part   []byte // of the next frame; nil until audio is not split at frames
	found  []Activity

	talking bool
	// In silence: the last frames, the newest at index frames%maxRunFrames.
	recent [maxRunFrames]frameMark
	// During speech: the loud frames in a row up to now, and the end of the last one that continued the speech, in frames.
	loudRun int
	lastEnd int64
	// Of speech that is not sustained yet: where it began and when it was last loud, in frames,
	// and its frames of sound since the last long pause, and those of them that have a pitch.
	begunAt   int64
	soundedAt int64
	sounding  int
	voiced    int
	sustained bool
	// peak is the level of the voice: that of the loudest frame, slowly decaying.
	peak float64
}

type frameMark struct {
	level float64
	loud  bool
	pitch bool
}

// NewDetector returns a Detector at the start of a stream.
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
		sustain:   (max(opt.SustainMS, 0) + frameMS - 1) / frameMS,
	}
	d.Reset()
	return d
}

// Reset forgets all audio. The clock starts at 0 again.
func (d *Detector) Reset() {
	d.meter.reset(d.opt.Rate, d.frame)
	d.floor.reset()
	d.frames, d.sound, d.part, d.found, d.talking = 0, 0, d.part[:0], d.found[:0], false
	d.recent = [maxRunFrames]frameMark{}
	d.loudRun, d.lastEnd, d.peak = 0, 0, minLevel
	d.begunAt, d.soundedAt, d.sounding, d.voiced, d.sustained = 0, 0, 0, 0, false
}

// Speaking reports whether speech has started and not ended.
func (d *Detector) Speaking() bool { return d.talking }

// LastMS returns the end of the last sound of speech, in milliseconds since the first sample; ok is false without
// speech. During speech it is the newest sound, known before the silence that ends the speech.
func (d *Detector) LastMS() (ms int64, ok bool) {
	return d.ms(d.lastEnd), d.lastEnd > 0
}

// QuietMS returns how long there has been nothing that may belong to speech, not even a faint sound, in milliseconds.
func (d *Detector) QuietMS() int64 { return d.ms(d.frames - d.sound) }

// Recount restarts the count of sustained speech at this point.
func (d *Detector) Recount() { d.soundedAt, d.sounding, d.voiced, d.sustained = d.frames, 0, 0, false }

// ClockMS returns how much audio was processed, in whole milliseconds.
func (d *Detector) ClockMS() int64 {
	return (d.frames*int64(d.frame) + int64(len(d.part)/BytesPerSample)) * 1000 / int64(d.opt.Rate)
}

// Process returns the changes within pcm, valid until the next call. It drops a half sample. It does not allocate.
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

func (d *Detector) hear(frame []byte) {
	level := d.meter.measure(frame)
	d.decide(level, d.wantsPitch(level) && d.meter.pitched())
	if level > d.threshold()-stopMargin {
		d.sound = d.frames
	}
	d.floor.update(level, d.ceiling())
}

// wantsPitch reports whether the pitch of a frame of this level matters. Finding it takes time.
func (d *Detector) wantsPitch(level float64) bool {
	return (!d.talking || d.sustain > 0 && !d.sustained) && level > d.threshold()
}

// decide judges one frame. Its pitch matters only if it is loud, and until speech is sustained.
func (d *Detector) decide(level float64, pitched bool) {
	d.frames++
	if d.talking {
		if level > d.threshold() {
			d.sounds(pitched)
		}
		d.listenForEnd(level)
		return
	}
	m := frameMark{level: level, loud: level > d.threshold(), pitch: pitched}
	d.recent[d.frames%maxRunFrames] = m
	if m.loud {
		d.listenForStart()
	}
}

func (d *Detector) listenForStart() {
	window := d.need + slackFrames
	counted, pitched, top := 0, 0, minLevel
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
	// Noise has a pitch by chance now and then. A sound that is loud enough to interrupt needs less proof.
	parts := 2
	if top > d.threshold()+clearMargin {
		parts = 3
	}
	if counted < d.need || pitched*parts < d.need {
		return
	}
	// The edge is the first loud frame of this run.
	first, gap := 0, 0
	for i := 0; i < maxRunFrames && int64(i) < d.frames && gap <= maxGapFrames; i++ {
		if d.ago(i).loud {
			first, gap = i, 0
		} else {
			gap++
		}
	}
	d.begunAt = d.frames - 1 - int64(first)
	edge := d.ms(d.begunAt)
	d.talking, d.loudRun, d.lastEnd = true, 0, d.frames
	d.soundedAt, d.sounding, d.voiced, d.sustained = d.frames, 0, 0, false
	d.peak = minLevel
	d.report(Activity{Started: true, EdgeMS: edge, ReportMS: max(edge-int64(d.opt.PrefixMS), 0)})
	for i := range first + 1 {
		m := d.ago(i)
		d.peak = max(d.peak, m.level)
		if m.loud {
			d.sounds(m.pitch)
		}
	}
	d.recent = [maxRunFrames]frameMark{}
}

func (d *Detector) sounds(pitched bool) {
	if d.sustain == 0 || d.sustained {
		return
	}
	if d.frames-d.soundedAt > sustainGap {
		d.sounding, d.voiced = 0, 0
	}
	d.soundedAt = d.frames
	d.sounding++
	if pitched {
		d.voiced++
	}
	if d.sounding >= d.sustain && d.voiced*sustainPitch >= d.sounding {
		d.sustained = true
		edge := d.ms(d.begunAt)
		d.report(Activity{Sustained: true, EdgeMS: edge, ReportMS: edge})
	}
}

func (d *Detector) threshold() float64 { return max(d.floor.level+d.margin, d.minLevel) }

// decaying reports whether the frame i frames ago is far below an earlier one within the window.
func (d *Detector) decaying(i, window int) bool {
	level := d.ago(i).level
	for j := i + 1; j < window; j++ {
		if m := d.ago(j); m.loud && m.level-level > maxDecay {
			return true
		}
	}
	return false
}

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

// The voice itself, as in a long vowel, is not the background.
func (d *Detector) ceiling() float64 {
	if d.talking {
		return d.peak - voiceMargin
	}
	return maxFloor
}

func (d *Detector) report(a Activity) {
	a.AtMS = d.ms(d.frames)
	d.found = append(d.found, a)
}

func (d *Detector) ms(n int64) int64 { return n * int64(d.frame) * 1000 / int64(d.opt.Rate) }
