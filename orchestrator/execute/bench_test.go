package execute

import (
	"testing"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// BenchmarkRun measures an empty call, from Run to Finished.
func BenchmarkRun(b *testing.B) {
	for name, tool := range map[string]string{"reads": "look", "writes_again": "book"} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, Options{})
			done := make(chan struct{}, 1) // from Report to this loop; not closed
			c := f.e.Begin(Conversation{
				Session: registry.Session{ID: "s1", UserID: "ada"}, Report: func(calls.Input) { done <- struct{}{} },
			})
			defer c.Wait()
			defer c.End()
			j := f.job("c1", tool, `{"name":"ada"}`)
			b.ReportAllocs()
			for b.Loop() {
				c.Run(j)
				<-done
			}
		})
	}
}
