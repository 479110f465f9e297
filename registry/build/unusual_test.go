package build

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestUnusualIsBuilt: tools with rare but valid parameters have no findings, and the registry loads them and accepts
// the arguments.
func TestUnusualIsBuilt(t *testing.T) {
	closed := func(inside string) string { return `{"type":"object",` + inside + `"additionalProperties":false}` }
	one := func(schema string) string { return closed(`"properties":{"p":` + schema + `},`) }
	for _, tt := range []struct{ name, parameters, args string }{
		{"no parameters", closed(``), `{}`},
		{"an empty list of parameters", closed(`"properties":{},`), `{}`},
		{"a name in $defs with escapes", closed(`"properties":{"p":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"string"}},`), `{"p":"x"}`},
		{"a power of two beyond 2^53", one(`{"type":"integer","minimum":1152921504606846976,"maximum":1152921504606846976}`), `{"p":1152921504606846976}`},
		{"the greatest integer", one(`{"type":"integer","minimum":9223372036854774784}`), `{"p":9223372036854775807}`},
		{"numbers beyond all integers", one(`{"type":"number","minimum":1e30}`), `{"p":1e30}`},
		{"a bound as an exponent", one(`{"type":"integer","minimum":1e3,"maximum":1e3}`), `{"p":1.0e3}`},
		{"negative zero", one(`{"type":"integer","minimum":-0,"maximum":0}`), `{"p":-0}`},
		{"money", one(`{"type":"number","multipleOf":0.01,"minimum":0.01,"maximum":99999.99}`), `{"p":10.07}`},
		{"a pattern with a format", one(`{"type":"string","format":"date-time","pattern":"[+-][0-9]{2}:[0-9]{2}$"}`), `{"p":"2026-01-01T00:00:00+01:00"}`},
		{"the longest address", one(`{"type":"string","format":"ipv4","minLength":15}`), `{"p":"192.168.100.200"}`},
		{"only dates of leap years", one(`{"type":"string","format":"date","pattern":"^[0-9]{4}-02-29$"}`), `{"p":"2028-02-29"}`},
		{"each text of a pattern", one(`{"type":"array","items":{"type":"string","pattern":"^[ab]{3}$"},"uniqueItems":true,"minItems":8}`), `{"p":["aaa","aab","aba","abb","baa","bab","bba","bbb"]}`},
		{"chained dependentRequired", one(closed(`"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"dependentRequired":{"a":["b"],"b":["c"]},`)), `{"p":{"c":"x"}}`},
		{"properties named like keywords", closed(`"properties":{"type":{"type":"string"},"enum":{"type":"array","items":{"type":"string"}},"func":{"type":"string"},"ab":{"type":"string"},"aB":{"type":"string"}},`), `{"type":"x","func":"y"}`},
		{"a path", one(`{"type":"string","pattern":"^/[a-z/]*$"}`), `{"p":"/a/b"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			tool := filepath.Join(dir, toolsDir, "alpha")
			schema := read(t, dir, toolsDir+"/alpha/schema.json")
			at := strings.Index(schema, `"parameters"`)
			for name, text := range map[string]string{
				"schema.json": schema[:at] + `"parameters": ` + tt.parameters + "}\n",
				"guide.md":    "# alpha\n\nLooks things up.\n\n## Parameters\n\np, type, enum, func, ab and aB.\n\n## Examples\n\n```json\n" + tt.args + "\n```\n",
			} {
				if err := os.WriteFile(filepath.Join(tool, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			report := mustBuild(t, Options{Dir: dir})
			for _, f := range report.Findings {
				if !strings.Contains(f.Message, "still the one that voicegw tools new has written") {
					t.Errorf("%s: %s", f.Path, f.Message)
				}
			}
			nothing := registry.Bind(func(_ context.Context, _ registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
				return registry.Result{}, nil
			})
			loaded, err := registry.Load([]byte(read(t, dir, RegistryFile)), registry.Options{Handlers: map[string]registry.Handler{"alpha": nothing}})
			if err != nil {
				t.Fatal(err)
			}
			if built, _ := loaded.Snapshot().Tool("alpha"); string(built.Forms.Gemini) == "null" {
				t.Error("Gemini would be sent null for parameters")
			}
			if _, refused := loaded.Snapshot().Prepare("alpha", spec.ModeText, json.RawMessage(tt.args)); refused != nil {
				t.Errorf("a call is refused: %s", refused.Error.Message)
			}
		})
	}
}
