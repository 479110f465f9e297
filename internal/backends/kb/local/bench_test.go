package local_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// random is an embedder with cheap vectors: the benchmark measures the scan.
type random struct{ dimensions int }

func (e random) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		h.Write([]byte(text)) // it never fails
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		out[i] = make([]float32, e.dimensions)
		for j := range out[i] {
			out[i][j] = r.Float32() - 0.5
		}
	}
	return out, nil
}

func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// asked are kinds of queries to makeRecords: of two to four words; with a typo in about each third word; of words that
// most records have; as long as kb_search accepts, without a stop word; and with three alternatives.
func asked() map[string][]kb.Query {
	kinds := map[string][]kb.Query{}
	texts := makeQueries(1000)
	for i, text := range texts[:500] {
		kinds["unfiltered"] = append(kinds["unfiltered"], kb.Query{Text: text})
		letters := []byte(text)
		for at := 2 + i%3; at < len(letters); at += 7 {
			if letters[at] != ' ' {
				letters[at] = "aeoiklmrst"[(i+at)%10]
			}
		}
		kinds["typos"] = append(kinds["typos"], kb.Query{Text: string(letters)})
	}
	for i := range 100 {
		kinds["common"] = append(kinds["common"], kb.Query{Text: makeWord(i%9) + " " + makeWord((i*7)%11) + " " + makeWord((i*3)%10)})
	}
	for i := 0; i+8 <= len(texts); i += 8 {
		long := strings.Join(texts[i:i+8], " ")
		kinds["long"] = append(kinds["long"], kb.Query{Text: long[:min(len(long), 200)]})
		kinds["alternatives"] = append(kinds["alternatives"], kb.Query{Text: texts[i], Alternatives: texts[i+1 : i+4]})
	}
	return kinds
}

// BenchmarkSearch measures 100,000 records: building the index (once, reported as index-s and heap-MB, including the
// records), then each query. It reports the median and 99th percentile as p50-ms and p99-ms, and those of the processor
// time, which a busy machine does not lengthen, as p50-cpu-ms and p99-cpu-ms.
func BenchmarkSearch(b *testing.B) {
	if testing.Short() {
		b.Skip("a minute and 1.4 GB; run without -short")
	}
	const n = 100_000
	for _, mode := range []struct {
		name     string
		embedder kb.Embedder
	}{{"BM25", nil}, {"hybrid768", random{768}}} {
		b.Run(fmt.Sprintf("%s/%d", mode.name, n), func(b *testing.B) {
			before := memory()
			x, err := local.Open(local.Options{Embedder: mode.embedder})
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := x.Close(); err != nil {
					b.Error(err)
				}
			}()
			began := time.Now()
			if err := x.Apply(b.Context(), kb.Batch{Upsert: makeRecords(n)}); err != nil {
				b.Fatal(err)
			}
			made, heap := time.Since(began), memory()-before
			from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
			report := func(b *testing.B, queries []kb.Query) {
				measure(b, x, queries)
				b.ReportMetric(made.Seconds(), "index-s")
				b.ReportMetric(heap, "heap-MB")
			}
			for name, queries := range asked() {
				b.Run(name, func(b *testing.B) { report(b, queries) })
			}
			for name, q := range map[string]kb.Query{
				"namespace": {Namespaces: []kb.Namespace{kb.NamespaceStudio}},
				"filtered":  {Namespaces: []kb.Namespace{kb.NamespaceStudio}, Types: []kb.Type{kb.TypeDoc}, Tags: []string{"tag7"}, From: from},
			} {
				queries := asked()["unfiltered"]
				for i := range queries {
					q.Text = queries[i].Text
					queries[i] = q
				}
				b.Run(name, func(b *testing.B) { report(b, queries) })
			}
		})
	}
}

func measure(b *testing.B, x kb.Index, queries []kb.Query) {
	b.Helper()
	runtime.LockOSThread() // the thread with the measured processor time
	defer runtime.UnlockOSThread()
	var took, cpu []time.Duration
	for i := 0; b.Loop(); i++ {
		began, busy := time.Now(), cpuTime(b)
		if _, err := x.Search(b.Context(), queries[i%len(queries)]); err != nil {
			b.Fatal(err)
		}
		cpu = append(cpu, cpuTime(b)-busy)
		took = append(took, time.Since(began))
	}
	for unit, times := range map[string][]time.Duration{"ms": took, "cpu-ms": cpu} {
		slices.Sort(times)
		at := func(p float64) float64 { return float64(times[int(p*float64(len(times)-1))].Microseconds()) / 1000 }
		b.ReportMetric(at(0.5), "p50-"+unit)
		b.ReportMetric(at(0.99), "p99-"+unit)
	}
}

// BenchmarkChange measures a change of one record among 20,000 by a source.
func BenchmarkChange(b *testing.B) {
	x, err := local.Open(local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	}()
	records := makeRecords(20_000)
	if err := x.Apply(b.Context(), kb.Batch{Upsert: records}); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		rec := records[i%1000]
		rec.Text = fmt.Sprintf("%s %d", rec.Text, i)
		if err := x.Apply(b.Context(), kb.Batch{Upsert: []kb.Record{rec}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDemo measures a query to the demo, as in most tests and first sessions.
func BenchmarkDemo(b *testing.B) {
	x, err := local.Open(local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	}()
	s, err := kb.OpenSource(b.Context(), x, kb.SourceOptions{Static: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := x.Search(b.Context(), kb.Query{Text: "When are you open on Friday?", Limit: 3}); err != nil {
			b.Fatal(err)
		}
	}
}
