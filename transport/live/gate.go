package live

import "bytes"

// Live's audio, of both directions: 24 kHz PCM16, the default of session.start. One format serves both.
const (
	sampleRate = 24000
	bytesPerMS = sampleRate * 2 / 1000
)

const (
	// blockMS is the length that is measured, short enough for a plosive.
	blockMS = 10
	// loudLevel is the mean square of a loud block: -56 dBFS, the level of audio.FaintestSpeech. Recorded silence is
	// zeros, sometimes with single steps, and begins with a constant of -66 dBFS.
	loudLevel = 52 * 52
	// faintLevel is the largest sample of digital silence.
	faintLevel = 2
)

// loud reports whether a block of pcm is loud.
func loud(pcm []byte) bool {
	const block = blockMS * bytesPerMS
	for len(pcm) > 0 {
		n := min(len(pcm), block)
		var sum int64
		for i := 0; i+1 < n; i += 2 {
			s := int64(int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8))
			sum += s * s
		}
		if sum >= loudLevel*int64(n/2) && n >= 2 {
			return true
		}
		pcm = pcm[n:]
	}
	return false
}

// faint returns how many bytes of digital silence pcm begins with.
func faint(pcm []byte) int {
	for i := 0; i+1 < len(pcm); i += 2 {
		if s := int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8); s > faintLevel || s < -faintLevel {
			return i
		}
	}
	return len(pcm) &^ 1
}

// gate keeps the end of a silence that is not digital, which may be the faint beginning of a word: at most leadMS.
type gate []byte

func (g *gate) keep(pcm []byte) {
	const most = leadMS * bytesPerMS
	pcm = pcm[max(len(pcm)-most, 0):]
	if len(*g) == 0 {
		pcm = pcm[faint(pcm):]
	}
	if over := len(*g) + len(pcm) - most; over > 0 {
		*g = append((*g)[:0], (*g)[over:]...)
	}
	*g = append(*g, pcm...)
	if len(bytes.Trim(*g, "\x00")) == 0 {
		g.take()
	}
}

// take empties the gate and returns its content, valid until the next keep.
func (g *gate) take() []byte {
	lead := *g
	*g = lead[:0]
	return lead
}
