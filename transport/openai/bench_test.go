package openai

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/transport"
)

// audioFrame is an audio event in the provider's form, with n bytes of PCM.
func audioFrame(item string, n int) []byte {
	pcm := make([]byte, n)
	for i := range pcm {
		pcm[i] = byte(i * 31)
	}
	return []byte(fmt.Sprintf(`{"type":"response.output_audio.delta","event_id":"event_E6U0x5zQRGJVzr6MR41ud","response_id":"resp_E6U0xfWhN878XBMhc0LKn","item_id":%q,"output_index":0,"content_index":0,"delta":%q}`,
		item, base64.StdEncoding.EncodeToString(pcm)))
}

const benchItem = "item_E6U0xWSFIFri2uw2kTLLq"

// bareConn is a connection without a socket, for code that does not use it.
func bareConn(tb testing.TB) *conn {
	tb.Helper()
	tr, err := New(transport.Provider{APIKey: "sk-test"})
	if err != nil {
		tb.Fatal(err)
	}
	return newConn(tr, transport.Setup{Model: DefaultModel})
}

// BenchmarkAudioDown measures one audio event from frame to PCM, and for comparison base64 alone and a copy of the PCM.
func BenchmarkAudioDown(b *testing.B) {
	for _, n := range []int{960, 4800} {
		frame := audioFrame(benchItem, n)
		s, ok := scanFrame(frame)
		if !ok {
			b.Fatal("the frame is not plain")
		}
		b.Run(fmt.Sprintf("%dB/memcpy", n), func(b *testing.B) {
			src, dst := make([]byte, n), make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				copy(dst, src)
			}
		})
		b.Run(fmt.Sprintf("%dB/base64", n), func(b *testing.B) {
			dst := make([]byte, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := audio.AppendFromBase64(dst, s.delta); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dB/adapter", n), func(b *testing.B) {
			c := bareConn(b)
			b.ReportAllocs()
			for b.Loop() {
				if ev, ok := c.fastAudio(frame); !ok || ev == nil {
					b.Fatal("no audio")
				}
			}
			dst := make([]byte, 0, n)
			reportRatio(b, func() { _, _ = audio.AppendFromBase64(dst, s.delta) })
		})
	}
}

// BenchmarkAudioUp measures one append event, and for comparison base64 alone and a copy.
func BenchmarkAudioUp(b *testing.B) {
	for _, n := range []int{960, 4800} {
		pcm := make([]byte, n)
		b.Run(fmt.Sprintf("%dB/memcpy", n), func(b *testing.B) {
			dst := make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				copy(dst, pcm)
			}
		})
		b.Run(fmt.Sprintf("%dB/base64", n), func(b *testing.B) {
			dst := make([]byte, 0, 2*n)
			b.ReportAllocs()
			for b.Loop() {
				dst = audio.AppendBase64(dst[:0], pcm)
			}
		})
		b.Run(fmt.Sprintf("%dB/adapter", n), func(b *testing.B) {
			dst := make([]byte, 0, 2*n)
			b.ReportAllocs()
			for b.Loop() {
				dst = appendAudio(dst[:0], pcm)
			}
			reportRatio(b, func() { dst = audio.AppendBase64(dst[:0], pcm) })
		})
	}
}

// reportRatio reports the time of the measured work relative to base64 alone.
func reportRatio(b *testing.B, base64 func()) {
	took := b.Elapsed()
	start := time.Now()
	for range b.N {
		base64()
	}
	b.ReportMetric(float64(took)/float64(time.Since(start)), "x_base64")
}
