package audio

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// Clip is a sound that is held in memory as a whole.
type Clip struct {
	Rate int    // Hz
	PCM  []byte // 16-bit mono
}

// Duration returns how long the clip lasts.
func (c Clip) Duration() time.Duration { return Duration(c.Rate, len(c.PCM)) }

// Resample returns the clip at another rate; at its own, the clip itself, sharing its PCM. The error is ErrRate.
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

// The supported format tags (RFC 2361 appendix A, "WAVE and AVI Codec Registries"; extensible: Microsoft, "Multiple
// Channel Audio Data and WAVE Files").
const (
	wavPCM        = 0x0001
	wavFloat      = 0x0003
	wavALaw       = 0x0006
	wavULaw       = 0x0007
	wavExtensible = 0xFFFE
)

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

// wavHeader is the size of all before the samples: the RIFF header, a fmt chunk of 16 bytes and the data chunk's head.
const wavHeader = 44

// WriteWAV writes a mono 16-bit RIFF/WAVE file. The errors are ErrRate, ErrOddPCM, ErrWAVTooLarge and those of w.
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

const (
	// DefaultWAVLimit is how many bytes of audio data ReadWAV accepts: more than an hour and a half of 48 kHz stereo.
	DefaultWAVLimit = 512 << 20

	minWAVRate     = 4000
	maxWAVRate     = 384000
	maxWAVChannels = 8

	// wavStreamed is the data size from programs that cannot seek back; others write 0. Both mean "until the end".
	wavStreamed = 0xFFFFFFFF

	// maxFmtChunk is far above the 40 bytes of the longest fmt chunk known.
	maxFmtChunk = 4096
)

// ReadWAV reads a RIFF/WAVE file (Microsoft and IBM, "Multimedia Programming Interface and Data Specifications 1.0",
// August 1991, chapter 3) up to the end of its audio and mixes its channels down to one.
//
// It reads 8, 16, 24 and 32-bit integers, 32 and 64-bit floats and G.711, plain or in WAVE_FORMAT_EXTENSIBLE, at 4000
// to 384000 Hz with 1 to 8 channels. The clip keeps the file's rate. Unknown chunks are skipped. A data chunk of size 0
// or 0xFFFFFFFF, as written by a streaming program, is read to the end of r; a truncated one is read to its end. Mono
// 16-bit samples are returned bit by bit.
//
// The errors are ErrNotWAV, ErrWAVFormat, ErrWAVTooLarge (over
// DefaultWAVLimit) and any error of r except io.EOF and io.ErrUnexpectedEOF.
func ReadWAV(r io.Reader) (Clip, error) { return ReadWAVLimit(r, DefaultWAVLimit) }

// ReadFile reads a WAV file that must contain audio.
func ReadFile(name string) (Clip, error) {
	f, err := os.Open(name)
	if err != nil {
		return Clip{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return NonEmpty(ReadWAV(bufio.NewReader(f)))
}

// NonEmpty passes on a clip and its error; a clip without audio is an error.
func NonEmpty(clip Clip, err error) (Clip, error) {
	if err == nil && len(clip.PCM) == 0 {
		err = errors.New("it has no audio")
	}
	return clip, err
}

// ReadWAVLimit is ReadWAV with a limit on the bytes of audio data; zero or less means DefaultWAVLimit.
func ReadWAVLimit(r io.Reader, limit int64) (Clip, error) {
	if limit <= 0 {
		limit = DefaultWAVLimit
	}
	var head [12]byte
	if err := readWAVPart(r, head[:], "RIFF header"); err != nil {
		return Clip{}, err
	}
	if string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return Clip{}, fmt.Errorf("%w: it begins with %q and %q, want \"RIFF\" and \"WAVE\"", ErrNotWAV, head[:4], head[8:])
	}
	var format wavFormat
	for {
		var chunk [8]byte
		what := "data chunk"
		if format.size == 0 {
			what = "fmt chunk"
		}
		if err := readWAVPart(r, chunk[:], what); err != nil {
			return Clip{}, err
		}
		id, size := string(chunk[:4]), binary.LittleEndian.Uint32(chunk[4:])
		switch {
		case id == "fmt ":
			f, err := readWAVFormat(r, size)
			if err != nil {
				return Clip{}, err
			}
			format = f
		case id == "data" && format.size == 0:
			return Clip{}, fmt.Errorf("%w: the data chunk comes before the fmt chunk", ErrNotWAV)
		case id == "data":
			pcm, err := readWAVData(r, format, size, limit)
			if err != nil {
				return Clip{}, err
			}
			return Clip{Rate: format.rate, PCM: pcm}, nil
		default:
			if err := skipWAV(r, padded(size)); err != nil {
				return Clip{}, err
			}
		}
	}
}

// padded returns the size of a chunk's content in the file: chunks begin at even offsets.
func padded(size uint32) int64 { return int64(size) + int64(size&1) }

// readWAVPart fills b; the end of the file before that is an error.
func readWAVPart(r io.Reader, b []byte, what string) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends before or within the %s", ErrNotWAV, what)
	}
	if err != nil {
		return fmt.Errorf("read the %s: %w", what, err)
	}
	return nil
}

// skipWAV skips n bytes. The end of the file is not an error here: the next read finds it and reports the missing part.
func skipWAV(r io.Reader, n int64) error {
	if _, err := io.CopyN(io.Discard, r, n); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("skip a chunk: %w", err)
	}
	return nil
}

// extensibleGUID is the tail of sub-formats that begin with a format tag (KSDATAFORMAT_SUBTYPE_WAVEFORMATEX).
const extensibleGUID = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71"

// readWAVFormat reads a fmt chunk:
//
//	0  2  wFormatTag
//	2  2  nChannels
//	4  4  nSamplesPerSec
//	8  4  nAvgBytesPerSec   not used
//	12 2  nBlockAlign       bytes of one sample of all channels
//	14 2  wBitsPerSample
//	16 2  cbSize            not used, the chunk's size says it too
//	18 2  wValidBitsPerSample, 20 4 dwChannelMask, 24 16 SubFormat: extensible
func readWAVFormat(r io.Reader, size uint32) (wavFormat, error) {
	if size < 16 || size > maxFmtChunk {
		return wavFormat{}, fmt.Errorf("%w: the fmt chunk has %d bytes, want 16 to %d", ErrNotWAV, size, maxFmtChunk)
	}
	b := make([]byte, padded(size))
	if err := readWAVPart(r, b, "fmt chunk"); err != nil {
		return wavFormat{}, err
	}
	le := binary.LittleEndian
	rate, align := le.Uint32(b[4:]), int(le.Uint16(b[12:]))
	f := wavFormat{tag: le.Uint16(b), channels: int(le.Uint16(b[2:])), bits: int(le.Uint16(b[14:]))}
	if f.tag == wavExtensible {
		if size < 40 || string(b[26:40]) != extensibleGUID {
			return f, fmt.Errorf("%w: an extensible fmt chunk of %d bytes whose sub-format is not a format tag", ErrWAVFormat, size)
		}
		f.tag = le.Uint16(b[24:])
	}
	if rate < minWAVRate || rate > maxWAVRate {
		return f, fmt.Errorf("%w: %d Hz, want %d to %d Hz", ErrWAVFormat, rate, minWAVRate, maxWAVRate)
	}
	f.rate = int(rate)
	if f.channels < 1 || f.channels > maxWAVChannels {
		return f, fmt.Errorf("%w: %d channels, want 1 to %d", ErrWAVFormat, f.channels, maxWAVChannels)
	}
	// Samples that do not fill their bytes are padded at the low end, so only the bytes matter.
	f.size = (f.bits + 7) / 8
	if !f.supported() || align != f.frameSize() {
		return f, fmt.Errorf("%w: %v, %d bytes a frame; want PCM of 8, 16, 24 or 32 bits, float of 32 or 64 bits, A-law or "+
			"mu-law of 8 bits",
			ErrWAVFormat, f, align)
	}
	return f, nil
}

func (f wavFormat) supported() bool {
	switch f.tag {
	case wavPCM:
		return f.size >= 1 && f.size <= 4
	case wavFloat:
		return f.bits == 32 || f.bits == 64
	case wavALaw, wavULaw:
		return f.bits == 8
	}
	return false
}

func readWAVData(r io.Reader, f wavFormat, size uint32, limit int64) ([]byte, error) {
	want := int64(size)
	if size == 0 || size == wavStreamed {
		want = math.MaxInt64
	} else if want > limit {
		return nil, fmt.Errorf("%w: %d bytes of data, the limit is %d", ErrWAVTooLarge, want, limit)
	}
	// The size is only a claim: memory grows with the actual data.
	block := make([]byte, 4096*f.frameSize())
	var pcm []byte
	for got := int64(0); got < want; {
		part := block[:min(int64(len(block)), want-got)]
		n, err := io.ReadFull(r, part)
		if got += int64(n); got > limit {
			return nil, fmt.Errorf("%w: more than %d bytes of streamed data", ErrWAVTooLarge, limit)
		}
		// An incomplete last frame is dropped.
		pcm = f.appendPCM(pcm, part[:n-n%f.frameSize()])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the data chunk: %w", err)
		}
	}
	return pcm, nil
}

func (f wavFormat) appendPCM(dst, data []byte) []byte {
	if f.channels == 1 && f.tag == wavPCM && f.size == BytesPerSample {
		return append(dst, data...)
	}
	for ; len(data) > 0; data = data[f.frameSize():] {
		sum := 0.0
		for c := range f.channels {
			sum += f.sample(data[c*f.size:])
		}
		dst = appendSample(dst, clip16(sum/float64(f.channels)))
	}
	return dst
}

// sample is on the scale of 16 bits. Floats are clipped, so that one bad channel cannot silence the rest.
func (f wavFormat) sample(b []byte) float64 {
	le := binary.LittleEndian
	switch {
	case f.tag == wavULaw:
		return float64(fromULaw[b[0]])
	case f.tag == wavALaw:
		return float64(fromALaw[b[0]])
	case f.tag == wavFloat && f.size == 4:
		return fullScale(float64(math.Float32frombits(le.Uint32(b))))
	case f.tag == wavFloat:
		return fullScale(math.Float64frombits(le.Uint64(b)))
	case f.size == 1: // the only unsigned one
		return float64(int(b[0])-128) * 256
	case f.size == 2:
		return float64(sampleAt(b, 0))
	case f.size == 3:
		return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 16)
	}
	return float64(int32(le.Uint32(b))) / (1 << 16)
}

// fullScale maps -1..1 to the scale of 16 bits. NaN becomes silence.
func fullScale(v float64) float64 {
	if v != v {
		return 0
	}
	return min(max(v, -1), 1) * 32768
}

// G.711 carries one sample in one byte, on a logarithmic scale of 8 segments of 16 steps each (ITU-T Recommendation
// G.711, 11/1988, tables 1 and 2). It is usually used at 8000 Hz, but nothing here depends on the rate.
const (
	ulawBias = 0x84  // added so that each segment is one power of two
	ulawClip = 32635 // the largest magnitude that does not overflow with the bias
)

// AppendULaw appends pcm as G.711 mu-law, one byte a sample, without a half sample at its end.
func AppendULaw(dst, pcm []byte) []byte {
	dst = slices.Grow(dst, len(pcm)/BytesPerSample)
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		dst = append(dst, encodeULaw(sampleAt(pcm, i)))
	}
	return dst
}

// AppendFromULaw appends G.711 mu-law as PCM. dst's free capacity and ulaw must not overlap.
func AppendFromULaw(dst, ulaw []byte) []byte {
	dst = slices.Grow(dst, len(ulaw)*BytesPerSample)
	for _, b := range ulaw {
		dst = appendSample(dst, fromULaw[b])
	}
	return dst
}

// AppendALaw appends pcm as G.711 A-law, one byte a sample, without a half sample at its end.
func AppendALaw(dst, pcm []byte) []byte {
	dst = slices.Grow(dst, len(pcm)/BytesPerSample)
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		dst = append(dst, encodeALaw(sampleAt(pcm, i)))
	}
	return dst
}

// AppendFromALaw appends G.711 A-law as PCM. dst's free capacity and alaw must not overlap.
func AppendFromALaw(dst, alaw []byte) []byte {
	dst = slices.Grow(dst, len(alaw)*BytesPerSample)
	for _, b := range alaw {
		dst = appendSample(dst, fromALaw[b])
	}
	return dst
}

// fromULaw and fromALaw are the decoder's 256 output values.
var fromULaw, fromALaw = func() (u, a [256]int16) {
	for i := range u {
		u[i] = decodeULaw(byte(i))
		a[i] = decodeALaw(byte(i))
	}
	return u, a
}()

// encodeULaw returns the complement of sign, segment and step, as G.711 sends it.
func encodeULaw(s int16) byte {
	v, sign := int32(s), byte(0)
	if v < 0 {
		v, sign = -v, 0x80
	}
	v = min(v, ulawClip) + ulawBias
	segment := 7
	for mask := int32(0x4000); v&mask == 0 && segment > 0; mask >>= 1 {
		segment--
	}
	step := byte(v>>(segment+3)) & 0x0F
	return ^(sign | byte(segment)<<4 | step)
}

func decodeULaw(b byte) int16 {
	b = ^b
	v := (int32(b&0x0F)<<3+ulawBias)<<(b>>4&7) - ulawBias
	if b&0x80 != 0 {
		v = -v
	}
	return int16(v)
}

// alawMask inverts every second bit of the transmitted byte (G.711 section 3.2).
const alawMask = 0x55

// Negative values are complemented, not negated, so that -1 is the smallest negative value.
func encodeALaw(s int16) byte {
	v, sign := int32(s)>>4, byte(0x80)
	if v < 0 {
		v, sign = ^v, 0
	}
	// v has 11 bits: the first 32 steps have the same width, and each segment above is twice as coarse.
	segment := 0
	for v > 0x1F {
		v >>= 1
		segment++
	}
	if v >= 0x10 {
		segment++
	}
	return (sign | byte(segment)<<4 | byte(v)&0x0F) ^ alawMask
}

func decodeALaw(b byte) int16 {
	b ^= alawMask
	v := int32(b&0x0F)<<4 + 8
	if segment := b >> 4 & 7; segment > 0 {
		v = (v + 0x100) << (segment - 1)
	}
	if b&0x80 == 0 {
		v = -v
	}
	return int16(v)
}
