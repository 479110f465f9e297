package web

import (
	"encoding/binary"
	"math"
	"os"
	"testing"
)

// toneAt is a 440 Hz tone from a sample on.
func toneAt(rate, from, count int) []int16 {
	out := make([]int16, count)
	for i := range out {
		out[i] = int16(9000 * math.Sin(2*math.Pi*440*float64(from+i)/float64(rate)))
	}
	return out
}

// babble is something like speech: a voice whose pitch and vowels move, in
// syllables with pauses. No stretch of it looks like another one.
func babble(rate int, seconds float64) []int16 {
	out := make([]int16, int(seconds*float64(rate)))
	phase := 0.0
	for i := range out {
		t := float64(i) / float64(rate)
		pitch := 120 + 35*math.Sin(2*math.Pi*0.37*t) + 15*math.Sin(2*math.Pi*1.13*t)
		phase += 2 * math.Pi * pitch / float64(rate)
		vowel := 700 + 400*math.Sin(2*math.Pi*0.71*t+1)
		sum := 0.0
		for harmonic := 1; harmonic <= 24; harmonic++ {
			distance := (float64(harmonic)*pitch - vowel) / 500
			sum += math.Exp(-distance*distance) * math.Sin(float64(harmonic)*phase)
		}
		syllable := math.Max(0, math.Sin(2*math.Pi*(2.3*t+0.4*math.Sin(2*math.Pi*0.29*t))))
		out[i] = int16(4000 * sum * syllable)
	}
	return out
}

func pcmBytes(pcm []int16) []byte {
	out := make([]byte, 0, 2*len(pcm))
	for _, x := range pcm {
		out = binary.LittleEndian.AppendUint16(out, uint16(x))
	}
	return out
}

// writeWAV writes mono PCM16 as a file (RIFF, "fmt " and "data").
func writeWAV(t *testing.T, path string, rate int, pcm []int16) {
	t.Helper()
	data := pcmBytes(pcm)
	out := []byte("RIFF")
	out = binary.LittleEndian.AppendUint32(out, uint32(36+len(data)))
	out = append(out, "WAVEfmt "...)
	for _, field := range []uint32{16, 1 | 1<<16, uint32(rate), uint32(2 * rate), 2 | 16<<16} {
		out = binary.LittleEndian.AppendUint32(out, field)
	}
	out = append(out, "data"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
	if err := os.WriteFile(path, append(out, data...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bestCorrelation is the largest normalised correlation of part with any
// stretch of whole.
func bestCorrelation(whole, part []int16) float64 {
	partEnergy := energy(part)
	best := 0.0
	for at := 0; at+len(part) <= len(whole); at++ {
		stretch := whole[at : at+len(part)]
		sum := 0.0
		for i, x := range part {
			sum += float64(x) * float64(stretch[i])
		}
		if scale := math.Sqrt(partEnergy * energy(stretch)); scale > 0 {
			best = math.Max(best, sum/scale)
		}
	}
	return best
}

func energy(pcm []int16) float64 {
	sum := 0.0
	for _, x := range pcm {
		sum += float64(x) * float64(x)
	}
	return sum
}

// readPCM reads a PCM16 WAV with the usual header of 44 bytes.
func readPCM(t *testing.T, path string) []int16 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < 44 {
		t.Fatalf("%s is no WAV file", path)
	}
	out := make([]int16, 0, len(data)/2)
	for i := 44; i+1 < len(data); i += 2 {
		out = append(out, int16(binary.LittleEndian.Uint16(data[i:])))
	}
	return out
}
