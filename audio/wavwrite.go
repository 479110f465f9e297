package audio

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

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
