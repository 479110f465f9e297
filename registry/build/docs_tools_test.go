package build

import (
	"encoding/json"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// A paragraph before a block says which file it is, or into which schema.json it goes.
	docFile   = regexp.MustCompile(`^\*\*(tools/[a-z-]+/[a-z_]+\.(?:go|json|md))\*\*:$`)
	docMember = regexp.MustCompile(`^In \*\*(tools/[a-z-]+/schema\.json)\*\*:$`)
)

// docFiles returns the files of tools that the page shows, by their paths. Each block of Go is one.
func docFiles(t *testing.T, page string) map[string]string {
	t.Helper()
	files := map[string]string{}
	var before, fence, info string
	var block strings.Builder
	for line := range strings.Lines(page) {
		text := strings.TrimRight(line, "\n")
		switch {
		case fence == "":
			if fence, info = opensFence(text); fence == "" && strings.TrimSpace(text) != "" {
				before = text
			}
			block.Reset()
			continue
		case !closesFence(text, fence):
			block.WriteString(line)
			continue
		}
		fence = ""
		file, member := docFile.FindStringSubmatch(before), docMember.FindStringSubmatch(before)
		switch {
		case file != nil:
			files[file[1]] += block.String()
		case member != nil:
			whole, closed := strings.CutSuffix(strings.TrimSpace(files[member[1]]), "}")
			if !closed {
				t.Fatalf("%s: %s stands before the file that it belongs to", Docs, before)
			}
			files[member[1]] = strings.TrimSpace(whole) + ",\n" + block.String() + "}\n"
		case info == "go":
			t.Errorf("%s: nothing says of which file this is, so that nobody compiles it:\n%s", Docs, block.String())
		}
		before = ""
	}
	return files
}

// TestDocsTools builds the tools of the page and runs their tests, and calls each by a registry. They stand
// beside the tools of the project only for the go command.
func TestDocsTools(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles tools and runs their tests")
	}
	page, err := os.ReadFile("../../" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("go.mod", "module voicegw\n")
	names := map[string]bool{}
	for name, text := range docFiles(t, string(page)) {
		if strings.HasSuffix(name, ".go") {
			if good, err := format.Source([]byte(text)); err != nil || string(good) != text {
				t.Errorf("%s: %s is not as gofmt writes it: %v", Docs, name, err)
			}
		}
		write(name, text)
		names[filepath.Base(filepath.Dir(name))] = true
	}
	report := mustBuild(t, Options{Dir: dir})
	if len(report.Findings) > 0 {
		t.Fatal(findingLines(report))
	}
	runDocsTools(t, dir, write, slices.Sorted(maps.Keys(names)))
}

// runDocsTools has the go command see the tools of a project in this one.
func runDocsTools(t *testing.T, dir string, write func(name, text string) string, names []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]string{}
	args := []string{"test", "-c", "-vet=off", "-o", filepath.Dir(write("bin/none", ""))}
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dir, toolsDir, name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			over[filepath.Join(root, toolsDir, name, filepath.Base(file))] = file
		}
	}
	run, err := os.ReadFile("testdata/docsrun/run_test.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	over[filepath.Join(root, toolsDir, "docsrun", "run_test.go")] = write("docsrun/run_test.go", string(run))
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "-overlay", write("overlay.json", string(overlay)))
	for _, name := range append(names, "docsrun") {
		args = append(args, "./"+toolsDir+"/"+name)
	}
	command := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -buildvcs=false", "VOICEGW_DOCS_REGISTRY="+filepath.Join(dir, RegistryFile))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
		}
	}
	command("go", args...)
	tests, err := filepath.Glob(filepath.Join(dir, "bin", "*.test"))
	if err != nil || len(tests) != 4 {
		t.Fatalf("the tests %v, want those of three tools and of the calls: %v", tests, err)
	}
	for _, test := range tests {
		command(test)
	}
}
