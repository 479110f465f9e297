package session

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// The bounds of kept speech: unanswered, perhaps starting, and of all sessions together, in bytes.
const (
	maxLookSpeech = 10 * time.Second
	maxLookOnset  = time.Second
	maxLookAll    = 64 << 20
)

// maxLookNoise is the part of maxLookAll for sound without detected speech, so that noisy rooms do not displace speech.
const maxLookNoise = maxLookAll / 2

// lookLevel is the minimum peak of a frame that may contain speech. A word may begin with a consonant that is
// consonantLevel dB fainter than the faintest detected speech. Fainter sound is kept only during speech.
var lookLevel = int(32768 * math.Pow(10, (audio.FaintestSpeech-consonantLevel)/20))

const consonantLevel = 10.0

// lookback keeps audio that was sent to the model and not answered, so that another connection can hear it; nothing
// before begin. It may be used concurrently; audio comes in the order of sending.
type lookback struct {
	all *atomic.Int64 // bytes of memory in all sessions; fixed, nil if it keeps nothing

	mu       sync.Mutex // guards the following fields
	rate     int        // Hz
	speaking bool       // the user is speaking: everything is kept
	words    stretch    // unanswered speech
	sound    stretch    // the latest sound, which may be the beginning of speech
	quiet    int        // bytes since the last loud frame in sound
}

type stretch struct {
	frames []*audio.Frame
	bytes  int
}

func (l *lookback) begin(rate int, all *atomic.Int64) { l.rate, l.all = rate, all }

// sent takes audio that was sent to the model. again: another connection or process has sent it before.
func (l *lookback) sent(pcm []byte, again bool) {
	if l.all == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.speaking || again {
		l.add(&l.words, pcm, maxLookSpeech, maxLookAll)
		return
	}
	switch {
	case loud(pcm):
		l.quiet = 0
	case l.sound.bytes == 0:
		return
	default:
		if l.quiet += len(pcm); l.quiet > audio.Bytes(l.rate, maxLookOnset) {
			l.drop(&l.sound)
			return
		}
	}
	l.add(&l.sound, pcm, maxLookOnset, maxLookNoise)
}

func loud(pcm []byte) bool {
	for len(pcm) >= 8 && binary.LittleEndian.Uint64(pcm) == 0 {
		pcm = pcm[8:]
	}
	for i := 0; i+1 < len(pcm); i += audio.BytesPerSample {
		if v := int(int16(binary.LittleEndian.Uint16(pcm[i:]))); v >= lookLevel || v <= -lookLevel {
			return true
		}
	}
	return false
}

// If all sessions exceed room bytes, the stretch is dropped: audio with a gap is useless. The caller must hold mu.
func (l *lookback) add(c *stretch, pcm []byte, most time.Duration, room int64) {
	if n := len(c.frames); n == 0 || !c.frames[n-1].Extend(pcm, audio.FrameCap) {
		f := audio.NewFrame(pcm)
		if l.all.Add(int64(f.Size())) > room {
			l.all.Add(-int64(f.Size()))
			f.Free()
			l.drop(c)
			return
		}
		c.frames = append(c.frames, f)
	}
	c.bytes += len(pcm)
	for len(c.frames) > 1 && c.bytes-len(c.frames[0].PCM) >= audio.Bytes(l.rate, most) {
		f := c.frames[0]
		c.bytes -= len(f.PCM)
		c.frames = append(c.frames[:0], c.frames[1:]...)
		l.all.Add(-int64(f.Size()))
		f.Free()
	}
}

func (l *lookback) drop(c *stretch) {
	for _, f := range c.frames {
		l.all.Add(-int64(f.Size()))
		f.Free()
	}
	*c = stretch{}
}

// The preceding sound belongs to the speech, unless the client detects speech (told).
func (l *lookback) speechStarted(told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if told {
		l.drop(&l.sound)
	}
	l.speaking = true
	l.words.frames = append(l.words.frames, l.sound.frames...)
	l.words.bytes += l.sound.bytes
	l.sound = stretch{}
}

// speechStopped records that the user has stopped. The words are kept until the model answers.
func (l *lookback) speechStopped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.speaking = false
}

func (l *lookback) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.speaking {
		l.drop(&l.words)
	}
}

func (l *lookback) ms() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return audio.MS(l.rate, l.words.bytes+l.sound.bytes)
}

// take returns the kept audio, oldest first, and forgets it. The frames belong to the caller.
func (l *lookback) take() []*audio.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(l.words.frames, l.sound.frames...)
	for _, f := range all {
		l.all.Add(-int64(f.Size()))
	}
	l.words, l.sound = stretch{}, stretch{}
	return all
}

func (l *lookback) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(&l.words)
	l.drop(&l.sound)
	l.speaking = false
}

func (l *lookback) resample(r *audio.Resampler, rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
	for _, c := range []*stretch{&l.words, &l.sound} {
		c.bytes = 0
		for i, f := range c.frames {
			c.frames[i] = audio.NewFrame(r.Process(nil, f.PCM))
			l.all.Add(int64(c.frames[i].Size() - f.Size()))
			c.bytes += len(c.frames[i].PCM)
			f.Free()
		}
	}
}

// updateLookback applies a decision about the user's speech. The caller must hold mu.
func (s *session) updateLookback(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.SpeechStarted:
		s.model.lookback.speechStarted(manual(s.start))
	case orchestrator.SpeechStopped:
		s.model.lookback.speechStopped()
	case orchestrator.SayAgain:
		s.sayAgain(a)
	case orchestrator.OpenItem:
		s.model.lookback.answered()
	case orchestrator.Transcript:
		if a.Role == transport.RoleAssistant && a.Turn == s.state.Turn() {
			s.model.lookback.answered()
		}
	case orchestrator.AboutCall:
		if _, runs := a.Do.(calls.Run); runs {
			s.model.lookback.answered()
		}
	}
}
