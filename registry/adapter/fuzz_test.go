package adapter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"google.golang.org/genai"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
)

// FuzzForms: for any parameters that the registry accepts there is no panic, the same result twice, forms in JSON
// that the providers' types accept, and a canonical schema that the registry's validator compiles.
func FuzzForms(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, problems := document.CompileParameters(text); len(problems) > 0 {
			return
		}
		firstOpenAI, firstGemini, err := adapter.All(text)
		secondOpenAI, secondGemini, again := adapter.All(text)
		if string(firstGemini) != string(secondGemini) || string(firstOpenAI) != string(secondOpenAI) ||
			(err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("two runs differ: %v, %v", err, again)
		}
		if err != nil {
			var list adapter.Problems
			if !errors.As(err, &list) || len(list) == 0 || strings.Contains(err.Error(), "no rule says why") {
				t.Fatalf("the error is not a list of problems: %v", err)
			}
			return
		}
		if !json.Valid(firstOpenAI) {
			t.Fatalf("not JSON: %s", firstOpenAI)
		}
		var g genai.Schema
		if firstGemini != nil {
			if err := json.Unmarshal(firstGemini, &g); err != nil {
				t.Fatal(err)
			}
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat = true
		c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is opened") }
		if err := c.AddResource("schema.json", bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("schema.json"); err != nil {
			t.Fatalf("accepted, but the validator refuses it: %v", err)
		}
	})
}

func BenchmarkAll(b *testing.B) {
	text := corpus(b)["kb-search"]
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := adapter.All(text); err != nil {
			b.Fatal(err)
		}
	}
}
