package build

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/registry"
)

// TestSettingsBinding: settings become a Go type with the types of their values, the registry has them as declared,
// and an author sees their keys.
func TestSettingsBinding(t *testing.T) {
	dir := newProject(t, "alpha")
	change(t, dir, "tools/alpha/schema.json", `"parameters"`, `"settings": {
		"api_key": {"type": "string", "secret": true, "description": "Key of the service."},
		"base_url": {"type": "string", "description": "Where it is", "default": "https://x.example"},
		"retries": {"type": "integer", "description": "How often.", "default": 3}, "share": {"type": "number", "description": "S.", "default": 1},
		"strict": {"type": "boolean", "description": "S.", "default": false}, "places": {"type": "list", "description": "P.", "default": []},
		"timeout": {"type": "duration", "description": "How long.", "default": "2s"}
	}, "parameters"`)
	change(t, dir, "tools/alpha/handler.go", "type Needs struct{}", "type Needs struct {\n\tSettings Settings\n}")
	report := mustBuild(t, Options{Dir: dir})
	if report.Errors() > 0 || strings.Contains(findingLines(report), "does not get them") {
		t.Fatal(findingLines(report))
	}
	text := strings.Join(strings.Fields(read(t, dir, "tools/alpha/"+ArgsFile)), " ")
	for _, part := range []string{
		`import ( "time" "voicegw/registry" )`, "which the operator gives under tools.alpha.", "type Settings struct {",
		"APIKey registry.Secret `setting:\"api_key\"`", `// Where it is. Default: "https://x.example".`, "BaseURL string `setting:\"base_url\"`", "Places []string `setting:\"places\"`",
		"Retries int `setting:\"retries\"`", "Share float64 `setting:\"share\"`", "Strict bool `setting:\"strict\"`", "Timeout time.Duration `setting:\"timeout\"`",
		"func (Settings) OwnSettings() {}",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the generated file lacks %s\n%s", part, text)
		}
	}
	var file registry.File
	if err := json.Unmarshal([]byte(read(t, dir, RegistryFile)), &file); err != nil {
		t.Fatal(err)
	}
	if s := file.Tools[0].Settings["api_key"]; len(file.Tools[0].Settings) != 7 || !s.Secret || s.Value() != nil {
		t.Errorf("the registry has %+v", file.Tools[0].Settings)
	}
	var shown strings.Builder
	if err := WriteTool(&shown, file.Tools[0], false); err != nil || !strings.Contains(shown.String(), "tools.alpha.api_key") || !strings.Contains(shown.String(), "(required)") {
		t.Errorf("%v: %s", err, shown.String())
	}
}
