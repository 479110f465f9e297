package gemini

import (
	"time"

	"voicegw/audio"
)

// earRate is the rate at which the model hears, in Hz; other rates are resampled to it
// (https://ai.google.dev/gemini-api/docs/live-guide, "Audio formats", read 2026-11-20).
const earRate = 16000

// Defaults of the activity detection. The documentation states none; these fit the recorded sessions, in which an end
// of speech was reported 0.9 s after the sound had ended. Vertex's sensitivities are low by default, but its recorded
// end of speech comes sooner than the 1.2 s of an explicitly low sensitivity: only its start is less sensitive.
const (
	defaultPrefixMS     = 60
	defaultSilenceMS    = 800
	defaultSilenceLowMS = 1200
	thresholdHigh       = 0.5
	thresholdLow        = 0.7
)

type speech struct {
	started bool
	// offset is the provider's audioOffset: the position on the audio clock at which the change was detected.
	offset time.Duration
	// duration is the length of the speech; set only at its end.
	duration time.Duration
}

// ear detects starts and ends of speech in the client's audio. Its clock
// is the audio itself. Owned by the connection's goroutine.
type ear struct {
	// Fixed after newEar.
	manual bool

	det       *audio.Detector
	res       *audio.Resampler // nil while the rate is earRate
	rate      int
	buf       []byte
	odd       []byte        // half a sample, waiting for the other half
	base      time.Duration // audio heard before the detector's last reset
	speaking  bool
	began     time.Duration
	collected time.Duration // audio within a manual activity
}

// newEar makes an ear from a setup's realtimeInputConfig. The model treats prefixPaddingMs as "the required duration of
// detected speech before start-of-speech is committed" (https://ai.google.dev/api/live, AutomaticActivityDetection,
// read 2026-11-20), not as padding.
func newEar(c realtimeConfig, vertex bool) *ear {
	o := audio.DetectorOptions{
		Rate: earRate, PrefixMS: -1, MinSpeechMS: defaultPrefixMS,
		SilenceMS: defaultSilenceMS, Threshold: thresholdHigh,
	}
	d := c.Detection
	if d.StartSensitivity == "START_SENSITIVITY_LOW" || (vertex && d.StartSensitivity == "") {
		o.Threshold = thresholdLow
	}
	if d.EndSensitivity == "END_SENSITIVITY_LOW" {
		o.SilenceMS = defaultSilenceLowMS
	}
	if d.PrefixPaddingMS != nil {
		o.MinSpeechMS = max(int(*d.PrefixPaddingMS), 10)
	}
	if d.SilenceDurationMS != nil {
		o.SilenceMS = max(int(*d.SilenceDurationMS), 10)
	}
	return &ear{manual: d.Disabled, det: audio.NewDetector(o), rate: earRate}
}

func (e *ear) setRate(rate int) error {
	if rate == e.rate {
		return nil
	}
	res, err := audio.NewResampler(rate, earRate)
	if err != nil {
		return err
	}
	e.res, e.rate, e.odd = res, rate, nil
	return nil
}

func (e *ear) hear(pcm []byte) []speech {
	if len(e.odd) > 0 {
		pcm = append(e.odd, pcm...)
		e.odd = nil
	}
	if len(pcm)%audio.BytesPerSample != 0 {
		e.odd = []byte{pcm[len(pcm)-1]}
		pcm = pcm[:len(pcm)-1]
	}
	if e.manual {
		if e.speaking {
			e.collected += audio.Duration(e.rate, len(pcm))
		}
		return nil
	}
	if e.rate != earRate {
		e.buf = e.res.Process(e.buf[:0], pcm)
		pcm = e.buf
	}
	var out []speech
	for _, a := range e.det.Process(pcm) {
		edge := e.base + time.Duration(a.EdgeMS)*time.Millisecond
		at := e.base + time.Duration(a.AtMS)*time.Millisecond
		if a.Started {
			e.speaking, e.began = true, edge
			out = append(out, speech{started: true, offset: edge})
			continue
		}
		e.speaking = false
		out = append(out, speech{offset: at, duration: edge - e.began})
	}
	return out
}

func (e *ear) streamEnd() []speech {
	clock := e.base + time.Duration(e.det.ClockMS())*time.Millisecond
	speaking := e.speaking
	e.base, e.speaking, e.odd = clock, false, nil
	e.det.Reset()
	if !speaking {
		return nil
	}
	return []speech{{offset: clock, duration: clock - e.began}}
}

// start and end mark an activity that the client declares. They return false if nothing changes.
func (e *ear) start() bool {
	if e.speaking {
		return false
	}
	e.speaking, e.collected = true, 0
	return true
}

func (e *ear) end() (time.Duration, bool) {
	if !e.speaking {
		return 0, false
	}
	e.speaking = false
	return e.collected, true
}
