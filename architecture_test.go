package voicegw_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// imports says what each package may import: packages of this module by their
// path in it, foreign ones by module (or a path in it), the standard library
// freely. A package that is not in here must be put in first: that is the moment
// to ask whether it belongs.
//
// The rules behind it: only cmd/voicegw knows the configuration, and nobody knows
// cmd. transport names nothing of the caller's side, registry nothing of the
// model's; the orchestrator maps one to the other. Adapters and the simulator's
// wires never know each other. Providers' types stay in their adapter.
var imports = map[string][]string{
	"audio":           {"github.com/segmentio/asm"},
	"audio/audiotest": {"audio"},
	"registry":        {},
	"prompts":         {},
	"config":          {"go.yaml.in/yaml/v3"},

	"transport":               {"audio"},
	"transport/transporttest": {"audio", "transport", "github.com/google/go-cmp"},
	"transport/gemini":        {"audio", "transport", websocket, "google.golang.org/genai"},
	"transport/openai":        {"audio", "transport", websocket, "github.com/openai/openai-go/v3"},

	"orchestrator":     {"prompts", "registry", "transport"},
	"session/wsclient": {websocket},
	"session": {
		"audio", "orchestrator", "registry", "session/wsclient", "transport",
		websocket, "github.com/cenkalti/backoff/v5", "golang.org/x/sync", "golang.org/x/time",
	},
	"gateway": {"registry", "session", "session/wsclient", "golang.org/x/sys", "golang.org/x/time"},
	"web":     {},

	"sim":                 {"audio", "sim/fault", "sim/gemini", "sim/openai", "sim/pace", "sim/scenario", "sim/voice", "sim/wire"},
	"sim/internal/strict": {"go.yaml.in/yaml/v3"},
	"sim/fault":           {"sim/internal/strict", "go.yaml.in/yaml/v3"},
	"sim/pace":            {},
	"sim/scenario":        {"sim/fault", "sim/internal/strict", "go.yaml.in/yaml/v3"},
	"sim/voice":           {"audio"},
	"sim/wire":            {"sim/fault", "sim/scenario", websocket},
	"sim/gemini":          {"audio", "sim/fault", "sim/pace", "sim/scenario", "sim/voice", "sim/wire", websocket, "google.golang.org/genai"},
	"sim/openai":          {"audio", "sim/fault", "sim/pace", "sim/scenario", "sim/voice", "sim/wire", websocket, "github.com/openai/openai-go/v3"},

	"talk": {"audio", "session/wsclient"},

	"cmd/voicegw": {
		"audio", "config", "gateway", "orchestrator", "prompts", "registry", "session", "sim", "sim/fault", "sim/scenario", "talk",
		"transport", "transport/gemini", "transport/openai", "web",
		"github.com/alecthomas/kong", "github.com/lmittmann/tint", "golang.org/x/term",
	},
	"scripts/web":        {"scripts/web/bundle"},
	"scripts/web/bundle": {"github.com/evanw/esbuild"},
}

const (
	module    = "voicegw"
	websocket = "github.com/coder/websocket"
)

type listed struct {
	ImportPath   string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportTable(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			if i == module+"/config" && name != "config" && name != "cmd/voicegw" || strings.HasPrefix(i, module+"/cmd/") && name != "cmd/voicegw" {
				t.Errorf("the tests of %s import %s: only cmd/voicegw knows the configuration, and nobody knows cmd", p.ImportPath, i)
			}
		}
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		seen[name] = true
		allowed, ok := imports[name]
		if !ok {
			t.Errorf("%s is not in the import table of architecture_test.go", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if !standard(i) && !slices.ContainsFunc(allowed, func(a string) bool { return covers(a, i) }) {
				t.Errorf("%s imports %s, which the import table of architecture_test.go does not allow", p.ImportPath, i)
			}
		}
	}
	for name := range imports {
		if !seen[name] {
			t.Errorf("the import table names %s, which does not exist", name)
		}
	}
}

// covers says whether the table's entry a allows the import path i: exactly for
// packages of this module, as a prefix for foreign modules.
func covers(a, i string) bool {
	if !strings.Contains(strings.SplitN(a, "/", 2)[0], ".") {
		return i == module+"/"+a
	}
	return i == a || strings.HasPrefix(i, a+"/")
}

// standard says whether i is of the standard library: its first element has no
// dot, and it is not ours.
func standard(i string) bool {
	first, _, _ := strings.Cut(i, "/")
	return first != module && !strings.Contains(first, ".")
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,GoFiles,Imports,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
