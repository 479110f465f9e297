package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// BenchmarkInterruption measures an interruption: from the first sample of the interrupting speech to the last audio
// byte of the answer at the client, and the provider's and the gateway's parts. Each iteration is one interruption in
// real time, with a model that sends speech in chunks of 20 ms.
func BenchmarkInterruption(b *testing.B) {
	for _, provider := range providers {
		b.Run(provider, func(b *testing.B) {
			st := newStack(b, provider, setting{scenario: longAnswer, firstAudioMS: 10, chunkMS: 20, speed: 1})
			var total, detection, gateway []time.Duration
			for b.Loop() {
				spoke, noted, last, flushed := interruptOnce(b, st)
				total = append(total, last.Sub(spoke))
				detection = append(detection, noted.Sub(spoke))
				gateway = append(gateway, flushed.Sub(noted))
			}
			for name, list := range map[string][]time.Duration{"total": total, "detection": detection, "gateway": gateway} {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "ms-"+name+"-p50")
				b.ReportMetric(float64(list[len(list)*95/100].Microseconds())/1000, "ms-"+name+"-p95")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// interruptOnce interrupts one answer. It returns the times of the user's speech, the provider's report, the last
// audio byte, and the flush.
func interruptOnce(b *testing.B, st *stack) (spoke, noted, last, flushed time.Time) {
	b.Helper()
	c := st.start(b, 16000)
	defer c.close()
	c.say(&protocol.InputText{Text: "talk"})
	waitFor[*protocol.AudioStart](c)
	for range 5 {
		for c.next().bytes == 0 {
		}
	}
	speech := testutil.SpeechLike(16000, time.Second, 5)
	var speaker sync.WaitGroup
	spoke = time.Now()
	speaker.Go(func() {
		next := spoke
		for frame := range slices.Chunk(speech, 640) {
			<-time.After(time.Until(next))
			if c.conn.WriteAudio(frame) != nil {
				return // the flush has arrived, and the client is gone
			}
			next = next.Add(20 * time.Millisecond)
		}
	})
	for {
		h := c.next()
		if h.bytes > 0 {
			last = h.at
		}
		if _, ok := h.msg.(*protocol.AudioFlush); ok {
			flushed = h.at
			break
		}
	}
	noted = st.tap.lastNote()
	c.conn.Abort()
	speaker.Wait()
	return spoke, noted, last, flushed
}
