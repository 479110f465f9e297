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

// TestToolWithoutParameters: a tool without arguments does not mention them in its schema or guide; a call without
// arguments is valid, and one with any is refused.
func TestToolWithoutParameters(t *testing.T) {
	for name, parameters := range map[string]string{
		"left out":      "",
		"empty":         `, "parameters": {}`,
		"closed":        `, "parameters": {"type": "object", "additionalProperties": false}`,
		"no properties": `, "parameters": {"type": "object", "properties": {}, "additionalProperties": false}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			schema := read(t, dir, toolsDir+"/alpha/schema.json")
			before, _, _ := strings.Cut(schema, `"parameters"`)
			before = strings.TrimSuffix(strings.TrimSpace(before), ",")
			for file, text := range map[string]string{
				"schema.json": before + parameters + "}\n",
				"guide.md":    "# alpha\n\nTells the time.\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, toolsDir, "alpha", file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range mustBuild(t, Options{Dir: dir}).Findings {
				if !strings.Contains(f.Message, "still the one that voicegw tools new has written") {
					t.Errorf("%s %s: %s", f.File, f.Path, f.Message)
				}
			}
			nothing := registry.Bind(func(context.Context, registry.Call[struct{}, struct{}]) (registry.Result, error) {
				return registry.Result{}, nil
			})
			loaded, err := registry.Load([]byte(read(t, dir, RegistryFile)), registry.Options{Handlers: map[string]registry.Handler{"alpha": nothing}})
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range []string{``, `{}`} {
				if _, refused := loaded.Snapshot().Prepare("alpha", spec.ModeText, json.RawMessage(args)); refused != nil {
					t.Errorf("called with %q: %v", args, refused.Error)
				}
			}
			if _, refused := loaded.Snapshot().Prepare("alpha", spec.ModeText, json.RawMessage(`{"x":1}`)); refused == nil || refused.Error.Type != registry.ErrorValidation {
				t.Errorf("an argument was accepted: %v", refused)
			}
		})
	}
}
