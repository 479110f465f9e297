package build

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/document"
)

// smallProject is a project whose program imports one tool; body is the tool's Go file.
func smallProject(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                 "module small\n\ngo 1.26\n",
		"cmd/voicegw/main.go":    smallMain,
		"tools/alpha/handler.go": body,
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const smallMain = `package main

import (
	"fmt"

	"small/tools/alpha"
)

func main() {
	_ = alpha.X
	fmt.Println("{\"problems\":[]}")
}
`

// TestStart starts real programs: one that works, some that panic at the start, one that exits, and one that does not
// compile.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles small programs")
	}
	for name, tt := range map[string]struct {
		tool string
		want []string // file:line and a part of the message
	}{
		"works":      {"package alpha\n\nvar X = \"\"\n", nil},
		"init":       {"package alpha\n\nvar X = \"\"\n\nfunc init() {\n\tpanic(\"no settings \" + X)\n}\n", []string{"tools/alpha/handler.go:6", "no settings"}},
		"a variable": {"package alpha\n\nvar X = y()\n\nfunc y() string {\n\tvar m map[string]int\n\tm[\"a\"] = 1\n\treturn \"\"\n}\n", []string{"tools/alpha/handler.go:7", "nil map"}},
		"compile":    {"package alpha\n\nvar X = z\n", []string{"tools/alpha/handler.go:3", "undefined: z"}},
		"exits":      {"package alpha\n\nimport \"os\"\n\nvar X = \"\"\n\nfunc init() {\n\tos.Exit(3)\n}\n", []string{"tools/zz_tools.go:0", "exit status 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{}
			if err := r.Start(t.Context(), smallProject(t, tt.tool), "tools", "start"); err != nil {
				t.Fatal(err)
			}
			lines := findingLines(r)
			if tt.want == nil && lines != "" || len(r.Findings) > 1 || tt.want != nil && lines == "" {
				t.Fatalf("found %q", lines)
			}
			for _, part := range tt.want {
				if !strings.Contains(lines, part) {
					t.Errorf("%q does not hold %q", lines, part)
				}
			}
		})
	}
}

// TestStartWithoutAProgram: a project that has only tools is not started.
func TestStartWithoutAProgram(t *testing.T) {
	r := &Report{}
	if err := r.Start(t.Context(), newProject(t, "alpha"), "tools", "start"); err != nil || len(r.Findings) > 0 {
		t.Errorf("found %v, %v", r.Findings, err)
	}
}

// TestStartUsesTheBuild: in a fresh clone, and after a change of the tools, the registry file is missing or old, and
// a check leaves it so. The program starts with the new build.
func TestStartUsesTheBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles small programs")
	}
	built := registry.File{GitCommit: "0123abc"}
	for name, onDisk := range map[string]string{"missing": "", "old": `{"gitCommit":"old"}`} {
		t.Run(name, func(t *testing.T) {
			dir := smallProject(t, "package alpha\n\nvar X = \"\"\n")
			main := strings.NewReplacer(`"small/tools/alpha"`, `"small/registry"`, "_ = alpha.X", "if !strings.Contains(registry.Text(), `0123abc`) { panic(`the registry is `+registry.Text()) }",
				"import (", "import (\n\t\"strings\"").Replace(smallMain)
			files := map[string]string{
				"cmd/voicegw/main.go":       main,
				"registry/embed.go":         "package registry\n\nimport \"embed\"\n\n//go:embed tool_registry.*\nvar fs embed.FS\n\nfunc Text() string {\n\tb, _ := fs.ReadFile(\"tool_registry.json\")\n\treturn string(b)\n}\n",
				"registry/tool_registry.md": "What is built.\n",
			}
			if onDisk != "" {
				files[RegistryFile] = onDisk
			}
			for file, text := range files {
				file = filepath.Join(dir, filepath.FromSlash(file))
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			r := &Report{registry: built}
			if err := r.Start(t.Context(), dir, "tools", "start"); err != nil {
				t.Fatal(err)
			}
			if lines := findingLines(r); lines != "" {
				t.Error(lines)
			}
		})
	}
}

// TestStartNamesTheTool: an error of loading the registry is reported at the tool's handler.
func TestStartNamesTheTool(t *testing.T) {
	dir := newProject(t, "alpha", "beta-two")
	report := mustBuild(t, Options{Dir: dir})
	s := starter{dir: dir, registry: report.registry}
	started := StartedOf(&registry.LoadError{Problems: []document.Problem{
		{Path: "/tools/1", Message: "beta_two: The handler needs Clock."}, {Message: "Something."},
	}})
	data, err := json.Marshal(started)
	if err != nil || json.Unmarshal(data, &started) != nil {
		t.Fatal(err)
	}
	report.add(s.loaded(started.Problems))
	lines := strings.Split(strings.TrimSpace(findingLines(report)), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "warning") })
	want := []string{
		"error tools/beta-two/handler.go:0 #handlergo : beta_two: The handler needs Clock.",
		"error tools/zz_tools.go:0 #handlergo : Something.",
	}
	if !slices.Equal(lines, want) || report.Version != "" {
		t.Errorf("version %q, findings %q", report.Version, lines)
	}
	if all := StartedOf(nil).Problems; all == nil || len(all) > 0 {
		t.Errorf("without an error: %v", all)
	}
}
