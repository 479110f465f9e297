package build

import (
	"bytes"
	"encoding/json"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// docFile is the paragraph before a block of the tutorial, with the file of the block.
var docFile = regexp.MustCompile(`^\*\*(tools/[a-z-]+/[a-z_]+\.(?:go|json|md))\*\*:$`)

const recipes = "docs/tools-recipes.md"

// pageBlock is a fenced block of a page.
type pageBlock struct{ before, info, text string }

// blocksOf returns the fenced blocks of a page, each with the line before it.
func blocksOf(t *testing.T, page string) []pageBlock {
	t.Helper()
	data, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []pageBlock
	var before, fence, info string
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		trimmed := strings.TrimRight(line, "\n")
		switch {
		case fence == "":
			if fence, info = opensFence(trimmed); fence == "" && strings.TrimSpace(trimmed) != "" {
				before = trimmed
			}
			text.Reset()
		case closesFence(trimmed, fence):
			blocks = append(blocks, pageBlock{before, info, text.String()})
			fence, before = "", ""
		default:
			text.WriteString(line)
		}
	}
	return blocks
}

// docFiles returns the files of the tutorial's tool and of the recipes' tools, by path.
func docFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, b := range blocksOf(t, Tutorial) {
		if file := docFile.FindStringSubmatch(b.before); file != nil {
			files[file[1]] = b.text
		} else if b.info == "go" {
			t.Errorf("%s: no line names the file of this block, so no test compiles it:\n%s", Tutorial, b.text)
		}
	}
	paths, err := filepath.Glob("../../examples/tools/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel("../../examples", path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(name)] = string(data)
	}
	return files
}

// TestRecipesQuoteTheTools: each block of Go or JSON in the recipes is part of a file that TestDocsTools builds.
func TestRecipesQuoteTheTools(t *testing.T) {
	files := docFiles(t)
	seen := 0
	for _, b := range blocksOf(t, recipes) {
		if b.info != "go" && b.info != "json" {
			continue
		}
		seen++
		quote := strings.Join(strings.Fields(b.text), " ")
		found := false
		for _, text := range files {
			found = found || strings.Contains(strings.Join(strings.Fields(text), " "), quote)
		}
		if !found {
			t.Errorf("%s: no file in examples/tools contains:\n%s", recipes, b.text)
		}
	}
	if seen < 10 {
		t.Errorf("%s has only %d blocks of code; has its form changed?", recipes, seen)
	}
}

// TestExamplesUseEveryKey: each key of schema.json is used by a tool in examples/tools or tools.
func TestExamplesUseEveryKey(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"../../examples/tools/*/schema.json", "../../tools/*/schema.json", "../../examples/js-tools/*/schema.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var keys map[string]json.RawMessage
			if err := json.Unmarshal(data, &keys); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			for key := range keys {
				used[key] = true
			}
		}
	}
	for field := range reflect.TypeFor[spec.Spec]().Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !used[key] {
			t.Errorf("no tool uses %s; add it to one in examples/tools", key)
		}
	}
}

// TestExamplesUseEveryCapability: each capability of a call is used by a tool in examples/tools.
func TestExamplesUseEveryCapability(t *testing.T) {
	var handlers strings.Builder
	paths, err := filepath.Glob("../../examples/tools/*/handler.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		handlers.Write(data)
	}
	types := append(registry.CallCapabilities(), reflect.TypeFor[registry.Gallery](), reflect.TypeFor[registry.Stream](), reflect.TypeFor[registry.Snapshot]())
	for _, typ := range types {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(typ.String()) + `\b`).MatchString(handlers.String()) {
			t.Errorf("no tool in examples/tools uses %s", typ)
		}
	}
}

// TestDocsTools builds the tools of the tutorial and the recipes, runs their tests, and calls each by a registry.
// They are in tools/ only for the go command.
func TestDocsTools(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles tools and runs their tests")
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
	for name, text := range docFiles(t) {
		if strings.HasSuffix(name, ".go") {
			if good, err := format.Source([]byte(text)); err != nil || string(good) != text {
				t.Errorf("%s is not formatted by gofmt: %v", name, err)
			}
		}
		write(name, text)
		names[filepath.Base(filepath.Dir(name))] = true
	}
	report := mustBuild(t, Options{Dir: dir})
	if len(report.Findings) > 0 {
		t.Fatal(findingLines(report))
	}
	compareExamples(t, dir)
	runDocsTools(t, dir, write, slices.Sorted(maps.Keys(names)))
}

// compareExamples compares the generated code of the tools in examples with that of a build in dir; -update rewrites
// it.
func compareExamples(t *testing.T, dir string) {
	t.Helper()
	schemas, err := filepath.Glob("../../examples/tools/*/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range schemas {
		file := filepath.Join(filepath.Dir(schema), "zz_args.go")
		built, err := os.ReadFile(filepath.Join(dir, toolsDir, filepath.Base(filepath.Dir(file)), "zz_args.go"))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, built, 0o644); err != nil { //nolint:gosec // it is committed
				t.Fatal(err)
			}
		}
		if committed, err := os.ReadFile(file); err != nil || !bytes.Equal(committed, built) {
			t.Errorf("%s is out of date; go test ./registry/build -run TestDocsTools -update rewrites it (%v)", file, err)
		}
	}
}

// runDocsTools makes a project's tools part of this module for the go command.
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
	if err != nil || len(tests) != 7 {
		t.Fatalf("the tests %v, want those of six tools and of the calls: %v", tests, err)
	}
	for _, test := range tests {
		command(test)
	}
}
