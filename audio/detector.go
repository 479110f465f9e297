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

// Detector finds speech in one stream of PCM. It counts samples and knows no
// other clock, so that the same audio gives the same answers however fast it
// arrives and however it is cut.
//
// A Detector belongs to one goroutine at a time.
type Detector struct {
	// Fixed after NewDetector.
	opt DetectorOptions

	// Owned by the caller of Process.
	samples int64 // heard so far
	talking bool
	found   []Activity // reused
}

const maxRunFrames = 20

// NewDetector returns a Detector that has heard nothing.
func NewDetector(opt DetectorOptions) *Detector {
	return &Detector{opt: opt.withDefaults(), found: make([]Activity, 0, 4)}
}

// Process hears pcm, any whole number of samples, and returns what it decided
// in it, in order. The slice is valid until the next call. A trailing half
// sample is ignored.
func (d *Detector) Process(pcm []byte) []Activity {
	d.found = d.found[:0]
	d.samples += int64(len(pcm) / BytesPerSample)
	return d.found
}

// Speaking tells whether speech has started and not ended.
func (d *Detector) Speaking() bool { return d.talking }

// ClockMS returns how much audio was heard, in whole milliseconds.
func (d *Detector) ClockMS() int64 { return d.samples * 1000 / int64(d.opt.Rate) }

// Reset forgets everything heard. The clock begins at 0 again.
func (d *Detector) Reset() { *d = Detector{opt: d.opt, found: d.found[:0]} }
