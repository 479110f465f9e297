package audio

import (
	"fmt"
	"time"
)

// Clip is a sound that is held in memory as a whole.
type Clip struct {
	Rate int    // Hz
	PCM  []byte // 16-bit mono
}

// Duration returns how long the clip lasts.
func (c Clip) Duration() time.Duration { return Duration(c.Rate, len(c.PCM)) }

// Resample returns the clip at another rate, with the same duration to the sample.
// At the clip's own rate it returns the clip itself, sharing its PCM. The error
// is ErrRate, as for NewResampler.
func (c Clip) Resample(rate int) (Clip, error) {
	if rate == c.Rate {
		return c, nil
	}
	r, err := NewResampler(c.Rate, rate)
	if err != nil {
		return Clip{}, err
	}
	out := r.Process(make([]byte, 0, r.MaxOut(len(c.PCM))), c.PCM)
	return Clip{Rate: rate, PCM: r.Flush(out)}, nil
}

// The supported format tags (RFC 2361 appendix A, "WAVE and AVI Codec
// Registries"; extensible: Microsoft, "Multiple Channel Audio Data and WAVE
// Files").
const (
	wavPCM        = 0x0001
	wavFloat      = 0x0003
	wavALaw       = 0x0006
	wavULaw       = 0x0007
	wavExtensible = 0xFFFE
)

// wavFormat is the content of a fmt chunk.
type wavFormat struct {
	tag      uint16 // the encoding of the samples; never wavExtensible
	channels int
	rate     int // Hz
	size     int // bytes of one sample of one channel
	bits     int
}

func (f wavFormat) frameSize() int { return f.channels * f.size }

// String names the format as an error shows it.
func (f wavFormat) String() string {
	name := fmt.Sprintf("format 0x%04X", f.tag)
	switch f.tag {
	case wavPCM:
		name = "PCM"
	case wavFloat:
		name = "float"
	case wavALaw:
		name = "A-law"
	case wavULaw:
		name = "mu-law"
	}
	return fmt.Sprintf("%s, %d bits in %d bytes, %d channels, %d Hz", name, f.bits, f.size, f.channels, f.rate)
}
