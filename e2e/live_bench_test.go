package e2e

import (
	"net/http/httptest"
	"testing"
	"time"

	"voicegw/sim"
)

// BenchmarkIdleCall measures sessions in which both sides are silent and the client sends no audio: CPU in us per second
// of a session, and resident memory. A Live model measures time by its input audio, so its session carries silence in both
// directions.
func BenchmarkIdleCall(b *testing.B) {
	const sessions = 200
	for _, provider := range []string{"gemini", "openai", "live"} {
		b.Run(provider, func(b *testing.B) {
			model := sim.New(sim.Options{Seed: 1})
			defer model.Close()
			srv := httptest.NewServer(model)
			defer srv.Close()
			way := relayWay{provider: provider}
			r := startRelay(b, provider, srv.URL, false)
			empty := r.resident(b)
			for range sessions {
				c := benchClient(b, r.url, way.rate())
				defer c.Abort()
			}
			for b.Loop() {
				began, spent := time.Now(), r.cpu(b)
				<-time.After(relayTime)
				b.ReportMetric(float64((r.cpu(b)-spent).Microseconds())/time.Since(began).Seconds()/sessions, "us-cpu/s")
			}
			b.ReportMetric(float64(r.resident(b)-empty)/1024/sessions, "KB-rss/session")
			b.ReportMetric(0, "ns/op")
		})
	}
}
