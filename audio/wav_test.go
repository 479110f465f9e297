package audio_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// chunk is one RIFF chunk with its padding.
func chunk(id string, content []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(content)))
	b = append(b, content...)
	if len(content)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func riff(chunks ...[]byte) []byte {
	body := bytes.Join(chunks, nil)
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(b, "WAVE"...), body...)
}

// format is a plain fmt chunk.
func format(tag, channels, rate, bits int) []byte {
	size := (bits + 7) / 8
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(tag))
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*size))
	b = le.AppendUint16(b, uint16(channels*size))
	return chunk("fmt ", le.AppendUint16(b, uint16(bits)))
}

// extensible is a WAVE_FORMAT_EXTENSIBLE fmt chunk.
func extensible(tag, channels, rate, bits int, guid string) []byte {
	b := format(0xFFFE, channels, rate, bits)[8:]
	b = append(b, 22, 0, byte(bits), 0, 3, 0, 0, 0, byte(tag), byte(tag>>8))
	return chunk("fmt ", append(b, guid...))
}

const guidTail = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"

func floats32(v ...float64) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f)))
	}
	return b
}

func floats64(v ...float64) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	}
	return b
}

func TestReadWAVFormats(t *testing.T) {
	for name, c := range map[string]struct {
		format, data []byte
		want         []int
	}{
		"16 bit":            {format(1, 1, 16000, 16), pcm16(0, 1, -1, 32767, -32768), []int{0, 1, -1, 32767, -32768}},
		"8 bit is unsigned": {format(1, 1, 8000, 8), []byte{128, 0, 255, 129}, []int{0, -32768, 32512, 256}},
		"24 bit": {format(1, 1, 48000, 24), []byte{0, 0, 0x80, 0xFF, 0xFF, 0x7F, 0x80, 1, 0, 0x7F, 1, 0, 0xFF, 0xFF, 0xFF},
			[]int{-32768, 32767, 2, 1, 0}},
		"32 bit":               {format(1, 1, 48000, 32), []byte{0, 0, 0, 0x80, 0, 0x80, 1, 0, 0, 0, 0xFF, 0xFF}, []int{-32768, 2, -1}},
		"12 bit in 2 bytes":    {format(1, 1, 8000, 12), pcm16(16, -32768), []int{16, -32768}},
		"20 bit in 3 bytes":    {format(1, 1, 8000, 20), []byte{0, 1, 0}, []int{1}},
		"float":                {format(3, 1, 44100, 32), floats32(0, 0.5, -1, 1, 7, -7), []int{0, 16384, -32768, 32767, 32767, -32768}},
		"float is never wild":  {format(3, 1, 44100, 32), floats32(math.NaN(), math.Inf(1), math.Inf(-1)), []int{0, 32767, -32768}},
		"double":               {format(3, 1, 44100, 64), floats64(0.25, -0.25), []int{8192, -8192}},
		"mu-law":               {format(7, 1, 8000, 8), []byte{0xFF, 0x80, 0x00}, []int{0, 32124, -32124}},
		"A-law":                {format(6, 1, 8000, 8), []byte{0xD5, 0xAA, 0x2A}, []int{8, 32256, -32256}},
		"stereo":               {format(1, 2, 44100, 16), pcm16(100, 300, 32767, 32767, -1, 0), []int{200, 32767, -1}},
		"five channels":        {format(1, 5, 44100, 16), pcm16(10, 20, 30, 40, 50), []int{30}},
		"opposite full scale":  {format(1, 2, 44100, 16), pcm16(32767, -32767), []int{0}},
		"extensible PCM":       {extensible(1, 1, 16000, 16, guidTail), pcm16(5), []int{5}},
		"extensible float":     {extensible(3, 2, 16000, 32, guidTail), floats32(0.5, 0), []int{8192}},
		"no sample":            {format(1, 1, 16000, 16), nil, nil},
		"half a stereo sample": {format(1, 2, 16000, 16), pcm16(2, 4, 6), []int{3}},
		"an odd data chunk":    {format(1, 1, 16000, 8), []byte{128}, []int{0}},
		"fmt with an odd tail": {chunk("fmt ", append(format(1, 1, 16000, 16)[8:], 0, 0, 0)), pcm16(9), []int{9}},
	} {
		got, err := audio.ReadWAV(iotest.OneByteReader(bytes.NewReader(riff(c.format, chunk("data", c.data)))))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := pcm16(c.want...); !bytes.Equal(got.PCM, want) {
			t.Errorf("%s: % x, want % x", name, got.PCM, want)
		}
		if rate := int(binary.LittleEndian.Uint32(c.format[12:])); got.Rate != rate {
			t.Errorf("%s: %d Hz, want %d", name, got.Rate, rate)
		}
	}
}

func TestReadWAVChunks(t *testing.T) {
	f := format(1, 1, 16000, 16)
	pcm := pcm16(1, 2, 3)
	sized := func(size uint32, rest ...[]byte) []byte {
		head := binary.LittleEndian.AppendUint32([]byte("data"), size)
		return append(head, bytes.Join(rest, nil)...)
	}
	for name, file := range map[string][]byte{
		"unknown chunks, odd ones too":      riff(chunk("JUNK", []byte("abc")), f, chunk("LIST", []byte("x")), chunk("fact", make([]byte, 4)), chunk("data", pcm)),
		"chunks after the data are ignored": riff(f, chunk("data", pcm), chunk("LIST", []byte("after"))),
		"a streamed file, size 0":           riff(f, sized(0, pcm)),
		"a streamed file, largest size":     riff(f, sized(0xFFFFFFFF, pcm)),
		"a streamed file cut in half":       riff(f, sized(0, pcm, []byte{9})),
		"data cut off":                      riff(f, sized(1000, pcm)),
		"data cut off within one sample":    riff(f, sized(1000, pcm, []byte{9})),
		"a later fmt chunk counts":          riff(format(1, 2, 8000, 8), f, chunk("data", pcm)),
	} {
		got, err := audio.ReadWAV(bytes.NewReader(file))
		if err != nil || got.Rate != 16000 || !bytes.Equal(got.PCM, pcm) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadWAVRefuses(t *testing.T) {
	f := format(1, 1, 16000, 16)
	data := chunk("data", pcm16(1))
	for name, c := range map[string]struct {
		file []byte
		want error
		says string
	}{
		"nothing":                 {nil, audio.ErrNotWAV, "header"},
		"a short header":          {[]byte("RIFF"), audio.ErrNotWAV, "header"},
		"an mp3":                  {[]byte("ID3\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00"), audio.ErrNotWAV, "ID3"},
		"big endian":              {append([]byte("RIFX"), riff(f, data)[4:]...), audio.ErrNotWAV, "RIFX"},
		"64-bit RIFF":             {append([]byte("RF64"), riff(f, data)[4:]...), audio.ErrNotWAV, "RF64"},
		"an AVI":                  {[]byte("RIFF\x04\x00\x00\x00AVI "), audio.ErrNotWAV, "AVI"},
		"no fmt":                  {riff(chunk("LIST", nil)), audio.ErrNotWAV, "fmt chunk"},
		"data before fmt":         {riff(data, f), audio.ErrNotWAV, "before the fmt"},
		"no data":                 {riff(f), audio.ErrNotWAV, "data chunk"},
		"a chunk that is cut off": {riff(f, []byte("LIST\xff\xff\xff\x7fabc")), audio.ErrNotWAV, "data chunk"},
		"a short fmt":             {riff(chunk("fmt ", make([]byte, 14)), data), audio.ErrNotWAV, "14 bytes"},
		"a huge fmt":              {riff([]byte("fmt \xff\xff\xff\xff")), audio.ErrNotWAV, "4294967295"},
		"ADPCM":                   {riff(format(2, 1, 8000, 4), data), audio.ErrWAVFormat, "0x0002"},
		"no channel":              {riff(format(1, 0, 8000, 16), data), audio.ErrWAVFormat, "0 channels"},
		"nine channels":           {riff(format(1, 9, 8000, 16), data), audio.ErrWAVFormat, "9 channels"},
		"too slow":                {riff(format(1, 1, 3999, 16), data), audio.ErrWAVFormat, "3999"},
		"too fast":                {riff(format(1, 1, 384001, 16), data), audio.ErrWAVFormat, "384001"},
		"no bits":                 {riff(format(1, 1, 8000, 0), data), audio.ErrWAVFormat, "0 bits"},
		"64-bit integers":         {riff(format(1, 1, 8000, 64), data), audio.ErrWAVFormat, "64 bits"},
		"16-bit float":            {riff(format(3, 1, 8000, 16), data), audio.ErrWAVFormat, "float"},
		"16-bit mu-law":           {riff(format(7, 1, 8000, 16), data), audio.ErrWAVFormat, "mu-law"},
		"an unknown sub-format":   {riff(extensible(1, 1, 8000, 16, strings.Repeat("x", 14)), data), audio.ErrWAVFormat, "sub-format"},
		"a short extensible":      {riff(format(0xFFFE, 1, 8000, 16), data), audio.ErrWAVFormat, "16 bytes"},
	} {
		_, err := audio.ReadWAV(bytes.NewReader(c.file))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q with %q", name, err, c.want, c.says)
		}
	}
	frames := format(1, 1, 8000, 16)
	frames[8+12] = 3 // a frame of 3 bytes for a 16-bit sample
	if _, err := audio.ReadWAV(bytes.NewReader(riff(frames, data))); !errors.Is(err, audio.ErrWAVFormat) {
		t.Errorf("a wrong block alignment: error %v", err)
	}
}

func TestReadWAVLimit(t *testing.T) {
	f := format(1, 1, 16000, 16)
	for name, file := range map[string][]byte{
		"stated":   riff(f, chunk("data", make([]byte, 102))),
		"streamed": riff(f, []byte("data\x00\x00\x00\x00"), make([]byte, 102)),
	} {
		if _, err := audio.ReadWAVLimit(bytes.NewReader(file), 100); !errors.Is(err, audio.ErrWAVTooLarge) {
			t.Errorf("%s: error %v, want ErrWAVTooLarge", name, err)
		}
		if c, err := audio.ReadWAVLimit(bytes.NewReader(file), 102); err != nil || len(c.PCM) != 102 {
			t.Errorf("%s: %d bytes, %v", name, len(c.PCM), err)
		}
	}
	// A size over the limit is refused before the data is read.
	if _, err := audio.ReadWAVLimit(broken(riff(f, []byte("data\x66\x00\x00\x00"))), 100); !errors.Is(err, audio.ErrWAVTooLarge) {
		t.Errorf("stated but not read: error %v, want ErrWAVTooLarge", err)
	}
	// A claimed size must not cost memory.
	liar := riff(f, []byte("data\x00\x00\x00\x1f"))
	if n := testing.AllocsPerRun(5, func() {
		if _, err := audio.ReadWAV(bytes.NewReader(liar)); err != nil {
			t.Error(err)
		}
	}); n > 20 {
		t.Errorf("%v allocations for an empty file", n)
	}
}

var errDisk = errors.New("disk on fire")

// broken reads its data and then fails.
func broken(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(errDisk)) }

func TestReadWAVReportsReadErrors(t *testing.T) {
	file := riff(format(1, 1, 16000, 16), chunk("LIST", make([]byte, 20)), chunk("data", make([]byte, 20)))
	for n := range file {
		if _, err := audio.ReadWAV(broken(file[:n])); !errors.Is(err, errDisk) {
			t.Fatalf("broken after %d bytes: error %v, want the reader's", n, err)
		}
	}
	for n := range 40 { // a file that ends early is another error
		if _, err := audio.ReadWAV(bytes.NewReader(file[:n])); !errors.Is(err, audio.ErrNotWAV) {
			t.Fatalf("cut after %d bytes: error %v, want ErrNotWAV", n, err)
		}
	}
}

func TestWriteWAV(t *testing.T) {
	pcm := testutil.Noise(24000, -10, 500*time.Millisecond, 1)
	var file bytes.Buffer
	if err := audio.WriteWAV(&file, 24000, pcm); err != nil {
		t.Fatal(err)
	}
	if want := riff(format(1, 1, 24000, 16), chunk("data", pcm)); !bytes.Equal(file.Bytes(), want) {
		t.Errorf("the file begins with % x, want % x", file.Bytes()[:44], want[:44])
	}
	c, err := audio.ReadWAV(&file)
	if err != nil || c.Rate != 24000 || !bytes.Equal(c.PCM, pcm) || c.Duration() != 500*time.Millisecond {
		t.Errorf("read back: %d Hz, %v, %v", c.Rate, c.Duration(), err)
	}
	if err := audio.WriteWAV(io.Discard, 24000, pcm[:3]); !errors.Is(err, audio.ErrOddPCM) {
		t.Errorf("3 bytes: error %v, want ErrOddPCM", err)
	}
	for _, rate := range []int{0, -1, 384001} {
		if err := audio.WriteWAV(io.Discard, rate, pcm); !errors.Is(err, audio.ErrRate) {
			t.Errorf("%d Hz: error %v, want ErrRate", rate, err)
		}
	}
	for fit := range 2 { // the header fits, or nothing does
		if err := audio.WriteWAV(&fullDisk{room: fit * 44}, 24000, pcm); !errors.Is(err, errDisk) {
			t.Errorf("a full disk: error %v", err)
		}
	}
}

type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestClipResample(t *testing.T) {
	c := audio.Clip{Rate: 44100, PCM: testutil.Tone(44100, 440, -6, time.Second)}
	got, err := c.Resample(24000)
	if err != nil || got.Rate != 24000 || got.Duration() != time.Second {
		t.Fatalf("%d Hz, %v, %v", got.Rate, got.Duration(), err)
	}
	if snr := snrOf(steady(24000, got.PCM), 24000, 440); snr < 90 {
		t.Errorf("SNR %.1f dB", snr)
	}
	if same, err := c.Resample(44100); err != nil || !bytes.Equal(same.PCM, c.PCM) {
		t.Errorf("the same rate changed the clip: %v", err)
	}
	if _, err := (audio.Clip{Rate: 4000}).Resample(16000); !errors.Is(err, audio.ErrRate) {
		t.Errorf("from 4000 Hz: error %v, want ErrRate", err)
	}
}

func FuzzReadWAV(f *testing.F) {
	data := chunk("data", testutil.Noise(8000, -10, 5*time.Millisecond, 1))
	for _, head := range [][]byte{
		format(1, 1, 16000, 16), format(1, 2, 44100, 24), format(1, 1, 8000, 8), format(3, 3, 48000, 32), format(3, 1, 48000, 64),
		format(6, 1, 8000, 8), format(7, 2, 8000, 8), extensible(1, 1, 16000, 32, guidTail), chunk("JUNK", []byte("abc")),
	} {
		f.Add(riff(head, data))
	}
	f.Add(riff(chunk("JUNK", []byte("abc")), format(1, 1, 16000, 16), []byte("data\xff\xff\xff\xff"), data))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := audio.ReadWAVLimit(bytes.NewReader(file), 1<<16)
		if err != nil {
			if !errors.Is(err, audio.ErrNotWAV) && !errors.Is(err, audio.ErrWAVFormat) && !errors.Is(err, audio.ErrWAVTooLarge) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if len(c.PCM)%2 != 0 || len(c.PCM) > 2*len(file) || c.Rate < 4000 || c.Rate > 384000 {
			t.Fatalf("%d bytes became %d at %d Hz", len(file), len(c.PCM), c.Rate)
		}
		// The clip can be written and read again.
		var again bytes.Buffer
		if err := audio.WriteWAV(&again, c.Rate, c.PCM); err != nil {
			t.Fatal(err)
		}
		if back, err := audio.ReadWAV(&again); err != nil || back.Rate != c.Rate || !bytes.Equal(back.PCM, c.PCM) {
			t.Fatalf("written and read again: %v", err)
		}
	})
}
