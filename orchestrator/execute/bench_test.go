package execute

import (
	"testing"

	"voicegw/registry"
)

// BenchmarkRun is what a call of a tool that does nothing costs, from Run to Finished.
func BenchmarkRun(b *testing.B) {
	for name, tool := range map[string]string{"reads": "look", "writes_again": "book"} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, Options{})
			done := make(chan struct{}, 1) // from Finished to this loop; not closed
			calls := f.e.Begin(Conversation{
				Session: registry.Session{ID: "s1", UserID: "ada"}, Finished: func(Result) { done <- struct{}{} },
			})
			defer calls.Wait()
			defer calls.End()
			j := f.job("c1", tool, `{"name":"ada"}`)
			b.ReportAllocs()
			for b.Loop() {
				calls.Run(j)
				<-done
			}
		})
	}
}
