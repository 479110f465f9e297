package registry

import (
	"encoding/json"
	"fmt"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

var benchArgs = json.RawMessage(`{"query":"who works on the voice gateway","filters":{"type":"person","tags":["team"],"date_range":{"start":"2026-01-01","end":"2026-12-31"}},"top_k":3,"return_fields":["snippet","url"]}`)

// BenchmarkPrepare measures a call of kb_search in the registry: decoding, defaults, validation.
func BenchmarkPrepare(b *testing.B) {
	s := kbRegistry(b).Snapshot()
	for _, bench := range []struct {
		name string
		args json.RawMessage
	}{{"full", benchArgs}, {"query", json.RawMessage(`{"query":"who works on the voice gateway"}`)}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, refused := s.Prepare("kb_search", spec.ModeVoice, bench.args); refused != nil {
					b.Fatal(string(refused.Encode()))
				}
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, refused := s.Prepare("kb_search", spec.ModeVoice, json.RawMessage(`{"query":"","top_k":50,"x":1}`)); refused == nil {
				b.Fatal("it was accepted")
			}
		}
	})
}

// BenchmarkExecute adds the goroutine, the handler and the envelope.
func BenchmarkExecute(b *testing.B) {
	s := kbRegistry(b).Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if env := s.Execute(b.Context(), "kb_search", spec.ModeVoice, benchArgs, Session{}); !env.OK {
			b.Fatal(string(env.Encode()))
		}
	}
}

// BenchmarkLoad loads a registry of 200 tools of kb_search's size.
func BenchmarkLoad(b *testing.B) {
	opts := Options{Handlers: map[string]Handler{}}
	var entries []Entry
	for i := range 200 {
		id := fmt.Sprintf("tool_%d", i)
		entries = append(entries, entry(b, testutil.KBSearchSchema, fmt.Sprintf("toolId: %q", id)))
		opts.Handlers[id] = Bind(kbHandler)
	}
	data := encodeFile(b, entries...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(data, opts); err != nil {
			b.Fatal(err)
		}
	}
}
