package voice

import (
	"encoding/binary"
	"math"
)

// Loudness of an utterance, as fractions of full scale.
const (
	targetRMS = 0.1   // -20 dBFS, over the parts that are not silent
	peak      = 0.707 // -3 dBFS: nothing is louder
	knee      = 0.5   // above it the limiter compresses the wave
)

func toPCM(samples []float64) []byte {
	gain := 0.0
	if rms := activeRMS(samples); rms > 0 {
		gain = targetRMS / rms
	}
	pcm := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		v := int16(math.Round(limit(x*gain) * 32767))
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(v))
	}
	return pcm
}

// activeRMS is the root mean square over blocks that contain sound: those within 30 dB of the loudest.
func activeRMS(samples []float64) float64 {
	const block = 512
	loudest := 0.0
	var powers []float64
	for i := 0; i < len(samples); i += block {
		b := samples[i:min(i+block, len(samples))]
		p := 0.0
		for _, x := range b {
			p += x * x
		}
		p /= float64(len(b))
		powers = append(powers, p)
		loudest = max(loudest, p)
	}
	sum, n := 0.0, 0
	for _, p := range powers {
		if p > loudest/1000 {
			sum += p
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}

// limit keeps x within the peak; it compresses values above the knee without audible distortion.
func limit(x float64) float64 {
	a := math.Abs(x)
	if a <= knee {
		return x
	}
	const room = peak - knee
	a = knee + room*math.Tanh((a-knee)/room)
	return math.Copysign(a, x)
}
