package voicegw_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "voicegw"

// confined names the folders that may use a module of others; other modules are free. Tests are not restricted.
var confined = map[string][]string{
	"github.com/nats-io":                  {"store"},
	"github.com/prometheus/client_golang": {"internal/metrics"},
	"go.opentelemetry.io":                 {"internal/traces", "internal/testutil"},
	"github.com/golang-jwt/jwt":           {"internal/auth"},
	"github.com/MicahParks":               {"internal/auth"},
	"github.com/santhosh-tekuri":          {"registry"},
	"github.com/alecthomas/kong":          {"cmd/voicegw"},
	"github.com/lmittmann/tint":           {"internal/logging"},
	"github.com/coder/websocket":          {"internal/ws", "protocol", "session", "gateway", "client/wire", "transport", "sim", "examples/handoff"},
	"google.golang.org/genai":             {"transport/gemini", "sim/gemini"},
	"github.com/openai/openai-go":         {"transport/openai", "internal/backends", "transport/textmodel", "sim/openai", "client/talk"},
}

var (
	layerRow = regexp.MustCompile("(?m)^\\| ([0-9]+) \\| (`.*`) \\|$")
	quoted   = regexp.MustCompile("`([a-z0-9/-]+)`")
)

// layers reads the table of layers from ARCHITECTURE.md: the number of each folder's layer.
func layers(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]int{}
	for _, row := range layerRow.FindAllStringSubmatch(string(page), -1) {
		for _, folder := range quoted.FindAllStringSubmatch(row[2], -1) {
			if number[folder[1]], err = strconv.Atoi(row[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(number) < 20 {
		t.Fatalf("the table of layers has only %d folders; has its form changed?", len(number))
	}
	return number
}

// folderOf returns the longest key of a map that contains a package; empty if none does.
func folderOf[T any](folders map[string]T, name string) string {
	for ; name != "."; name = path.Dir(name) {
		if _, ok := folders[name]; ok {
			return name
		}
	}
	return ""
}

// TestLayers checks the imports of every package against the table of layers, and modules against confined.
func TestLayers(t *testing.T) {
	number := layers(t)
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		own := folderOf(number, name)
		if own == "" {
			t.Errorf("%s has no layer in ARCHITECTURE.md", name)
			continue
		}
		for _, i := range p.Imports {
			imported, ours := strings.CutPrefix(i, module+"/")
			if !ours {
				for prefix, folders := range confined {
					if strings.HasPrefix(i, prefix) && !slices.ContainsFunc(folders, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") }) {
						t.Errorf("%s imports %s, which only %v may", name, i, folders)
					}
				}
				continue
			}
			if in := folderOf(number, imported); in != own && number[in] >= number[own] {
				t.Errorf("%s (%s, layer %d) imports %s (%s, layer %d)", name, own, number[own], imported, in, number[in])
			}
		}
	}
}

type listed struct {
	ImportPath string
	GoFiles    []string
	Imports    []string
}

// TestMap compares the map of ARCHITECTURE.md with the disk: each line is a folder, and each package is in a folder of
// the map.
func TestMap(t *testing.T) {
	drawn := drawnFolders(t)
	for folder := range drawn {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			t.Errorf("the map of ARCHITECTURE.md draws %s, which is not a folder", folder)
		}
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name != module && name != "" && folderOf(drawn, name) == "" {
			t.Errorf("the map of ARCHITECTURE.md lacks %s", name)
		}
	}
}

// drawnFolders reads the map: a line for each folder, two spaces deeper than its parent's.
func drawnFolders(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## The map")
	_, rest, _ = strings.Cut(rest, "```\n")
	drawing, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no map")
	}
	line := regexp.MustCompile(`^((?:  )*)([a-z0-9/-]+)/ +\S`)
	drawn, path := map[string]bool{}, []string{}
	for text := range strings.Lines(drawing) {
		m := line.FindStringSubmatch(text)
		if m == nil || len(m[1])/2 > len(path) {
			t.Fatalf("the map of ARCHITECTURE.md: this line does not begin with a folder at its depth: %q", text)
		}
		path = append(path[:len(m[1])/2], m[2])
		drawn[strings.Join(path, "/")] = true
	}
	return drawn
}

func list(t *testing.T) []listed {
	t.Helper()
	goList := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,GoFiles,Imports", "./...")
	var stderr bytes.Buffer
	goList.Stderr = &stderr
	out, err := goList.Output()
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
