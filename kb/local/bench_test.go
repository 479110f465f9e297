package local_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"voicegw/kb"
	"voicegw/kb/kbtest"
	"voicegw/kb/local"
)

// random is an embedder whose vectors cost nothing to make: this is about the scan.
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

// BenchmarkSearch measures 100,000 records: making the index (once, reported as
// index-s and heap-MB, the records themselves included), then each query, whose
// median and 99th percentile are reported as p50-ms and p99-ms.
func BenchmarkSearch(b *testing.B) {
	if testing.Short() {
		b.Skip("a minute and 1.4 GB; run without -short")
	}
	const n = 100_000
	queries := kbtest.Queries(500)
	for _, mode := range []struct {
		name     string
		embedder kb.Embedder
	}{{"BM25", nil}, {"hybrid768", random{768}}} {
		b.Run(fmt.Sprintf("%s/%d", mode.name, n), func(b *testing.B) {
			before := memory()
			x, err := local.Open(b.Context(), local.Options{Embedder: mode.embedder})
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := x.Close(); err != nil {
					b.Error(err)
				}
			}()
			began := time.Now()
			if err := x.Apply(b.Context(), kb.Batch{Upsert: kbtest.Records(n)}); err != nil {
				b.Fatal(err)
			}
			made, heap := time.Since(began), memory()-before
			from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
			for name, q := range map[string]kb.Query{
				"unfiltered": {},
				"namespace":  {Namespaces: []kb.Namespace{kb.NamespaceStudio}},
				"filtered":   {Namespaces: []kb.Namespace{kb.NamespaceStudio}, Type: kb.TypeDoc, Tags: []string{"tag7"}, From: from},
			} {
				b.Run(name, func(b *testing.B) {
					measure(b, x, q, queries)
					b.ReportMetric(made.Seconds(), "index-s")
					b.ReportMetric(heap, "heap-MB")
				})
			}
		})
	}
}

func measure(b *testing.B, x kb.Index, q kb.Query, queries []string) {
	b.Helper()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		q.Text = queries[i%len(queries)]
		began := time.Now()
		if _, err := x.Search(b.Context(), q); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// BenchmarkChange measures a change of one record among 20,000, as a source makes it.
func BenchmarkChange(b *testing.B) {
	x, err := local.Open(b.Context(), local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	}()
	records := kbtest.Records(20_000)
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

// BenchmarkDemo is a question to the demo, as most tests and first sessions ask it.
func BenchmarkDemo(b *testing.B) {
	x, err := local.Open(b.Context(), local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	}()
	records, _ := kb.Load(kb.Demo())
	if err := x.Apply(b.Context(), kb.Batch{Upsert: records}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := x.Search(b.Context(), kb.Query{Text: "When are you open on Friday?", Limit: 3}); err != nil {
			b.Fatal(err)
		}
	}
}
