// Package registrytest makes registries for the tests of other packages.
package registrytest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

var project struct {
	sync.Mutex
	registry []byte
}

// Project builds the tools in the work tree once in a process, and returns their tool_registry.json. It does not write
// to the work tree. It may be called concurrently.
func Project(t testing.TB) []byte {
	t.Helper()
	project.Lock()
	defer project.Unlock()
	if project.registry == nil {
		project.registry = buildProject(t)
	}
	return slices.Clone(project.registry)
}

func buildProject(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "tools"), os.DirFS(filepath.Join(Root(t), "tools"))); err != nil {
		t.Fatal(err)
	}
	report, err := build.Build(build.Options{Dir: dir, Time: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if report.Errors() > 0 {
		t.Fatalf("the project's tools do not build: %+v", report.Findings)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(build.RegistryFile)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Root returns the directory of go.mod: the test's or one above it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod at or above the test's directory")
		}
		dir = filepath.Dir(dir)
	}
}

// File returns a tool_registry.json with some tools.
func File(t testing.TB, tools ...registry.Entry) []byte {
	t.Helper()
	data, err := registry.File{GeneratedAt: "2026-01-01T00:00:00.000Z", Tools: tools}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Inspected returns the arguments of registry.Load for a test that calls no tools of data: their handlers return an
// empty answer.
func Inspected(t testing.TB, data []byte) ([]byte, registry.Options) {
	t.Helper()
	var file registry.File
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	handlers := map[string]registry.Handler{}
	for _, tool := range file.Tools {
		handlers[tool.ToolID] = registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
			return registry.Result{}, nil
		})
	}
	return data, registry.Options{Handlers: handlers}
}

// Fits fails the test if data does not match a tool's output schema. tool is the tool's directory.
func Fits(t testing.TB, tool string, data any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "tools", tool, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, problems := spec.Parse(text)
	if len(problems) > 0 || len(parsed.Output) == 0 {
		t.Fatalf("the output of %s: %s %+v", tool, parsed.Output, problems)
	}
	form, problems := document.CompileOutput(parsed.Output)
	encoded, err := document.Marshal(data)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	value, problems, _ := document.Decode(encoded, registry.MaxDataBytes, document.MaxSpecDepth)
	value, _ = form.Emptied(value)
	if problems = append(problems, form.Validate(value)...); len(problems) > 0 {
		t.Errorf("the data of %s does not fit its output: %v", tool, problems)
	}
}

// Execute calls Prepare, Clamp with the tool's own limits, and Run.
func Execute(ctx context.Context, s *registry.Snapshot, id string, mode spec.Mode, raw json.RawMessage,
	session registry.Session, caps ...any) registry.Envelope {
	p, refused := s.Prepare(id, mode, raw)
	if refused != nil {
		return *refused
	}
	p.Clamp(nil)
	return p.Run(ctx, session, caps...)
}

type outputSchema struct {
	Ref        string                   `json:"$ref"`
	Defs       map[string]*outputSchema `json:"$defs"`
	Properties map[string]*outputSchema `json:"properties"`
	Required   []string                 `json:"required"`
	Items      *outputSchema            `json:"items"`
}

// Describes fails the test if a tool's output schema does not match its data type T: the properties must be equal at
// any depth, and required unless omitempty. tool is the tool's directory; but lists exceptions.
func Describes[T any](t testing.TB, tool string, but ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "tools", tool, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec struct{ Output *outputSchema }
	if err := json.Unmarshal(text, &spec); err != nil || spec.Output == nil {
		t.Fatalf("the output of %s: %v", tool, err)
	}
	(&describer{t, spec.Output.Defs, but}).compare(spec.Output, reflect.TypeFor[T](), tool)
}

type describer struct {
	t    testing.TB
	defs map[string]*outputSchema
	but  []string
}

func (d *describer) target(s *outputSchema) *outputSchema {
	if name, ref := strings.CutPrefix(s.Ref, "#/$defs/"); ref {
		return d.defs[name]
	}
	return s
}

func (d *describer) compare(s *outputSchema, of reflect.Type, at string) {
	d.t.Helper()
	s = d.target(s)
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		if of.Kind() == reflect.Slice {
			s, at = d.target(s.Items), at+"/*"
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	named := map[string]bool{}
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || slices.Contains(d.but, name) { // embedded, not encoded, or an exception
			continue
		}
		named[name] = true
		inside, has := s.Properties[name]
		if !has {
			d.t.Errorf("%s: the output schema lacks %q", at, name)
			continue
		}
		if optional := strings.Contains(options, "omit"); optional == slices.Contains(s.Required, name) {
			d.t.Errorf("%s: %q may be left out: %t; required: %t", at, name, optional, optional)
		}
		d.compare(inside, f.Type, at+"/"+name)
	}
	for name := range s.Properties {
		if !named[name] && !slices.Contains(d.but, name) {
			d.t.Errorf("%s: the output schema has %q, but the data does not", at, name)
		}
	}
}
