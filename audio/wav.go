package audio

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
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

// wavHeader is the size of everything before the samples: the RIFF header, a fmt
// chunk of 16 bytes and the data chunk's head.
const wavHeader = 44

// WriteWAV writes pcm as a mono 16-bit RIFF/WAVE file. The errors are ErrRate
// (rate not positive or over 384000 Hz), ErrOddPCM, ErrWAVTooLarge (over 4 GiB)
// and those of w.
func WriteWAV(w io.Writer, rate int, pcm []byte) error {
	switch {
	case rate <= 0 || rate > maxWAVRate:
		return fmt.Errorf("%w: %d Hz in a wav file, want 1 to %d Hz", ErrRate, rate, maxWAVRate)
	case len(pcm)%BytesPerSample != 0:
		return fmt.Errorf("%w: %d bytes", ErrOddPCM, len(pcm))
	case int64(len(pcm)) > math.MaxUint32-wavHeader:
		return fmt.Errorf("%w: %d bytes do not fit into a wav file, which ends at 4 GiB", ErrWAVTooLarge, len(pcm))
	}
	le := binary.LittleEndian
	h := make([]byte, 0, wavHeader)
	h = append(h, "RIFF"...)
	h = le.AppendUint32(h, uint32(wavHeader-8+len(pcm)))
	h = append(h, "WAVEfmt "...)
	h = le.AppendUint32(h, 16)
	h = le.AppendUint16(h, wavPCM)
	h = le.AppendUint16(h, 1)
	h = le.AppendUint32(h, uint32(rate))
	h = le.AppendUint32(h, uint32(rate*BytesPerSample))
	h = le.AppendUint16(h, BytesPerSample)
	h = le.AppendUint16(h, BytesPerSample*8)
	h = append(h, "data"...)
	h = le.AppendUint32(h, uint32(len(pcm)))
	if _, err := w.Write(h); err != nil {
		return fmt.Errorf("write the wav header: %w", err)
	}
	if _, err := w.Write(pcm); err != nil {
		return fmt.Errorf("write the wav data: %w", err)
	}
	return nil
}
