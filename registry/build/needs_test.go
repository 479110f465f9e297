package build

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// theirs are capabilities for a test: two types in both modes, one in text alone.
func theirs() map[spec.Mode][]reflect.Type {
	both := []reflect.Type{reflect.TypeFor[*registry.Snapshot](), reflect.TypeFor[registry.Messenger]()}
	return map[spec.Mode][]reflect.Type{spec.ModeVoice: both, spec.ModeText: append(both, reflect.TypeFor[registry.Utterance]())}
}

// TestNeeds builds tools with fields in Needs that can, and cannot, be filled.
func TestNeeds(t *testing.T) {
	tests := []struct{ imports, needs, want string }{
		{"", "type Needs struct{}", ""},
		{"", "type Needs struct {\n\tTools *registry.Snapshot\n\tClient registry.Messenger\n}", ""},
		{"", "type Needs struct{ *registry.Snapshot }", ""},
		{"", "type Tools = *registry.Snapshot\n\ntype Needs struct{ All Tools }", ""},
		{"", "type sender interface{ Timeout() }\n\ntype Needs struct{ Client sender }", ""},
		{"", "type Needs struct{ Client interface{ Timeout() } }", ""},
		{"", "type Needs struct {\n\tTools *registry.Snapshot\n\tclient registry.Messenger\n}", ":13 #handlergo : The field client of Needs begins with a small letter"},
		{"", "type Needs struct{ A, b *registry.Snapshot }", "The field b of Needs begins with a small letter"},
		{"", "type Needs struct{ _ *registry.Snapshot }", "The field _ of Needs begins with a small letter"},
		{"", "type store struct{}\n\ntype Needs struct{ store }", "The field store of Needs begins with a small letter"},
		{"", "type Needs struct{ Count int }", "Nobody provides Count (int). A field of Needs has one of the types *registry.Snapshot, registry.Messenger, registry.Utterance."},
		{"", "type Needs struct{ Any any }", "Nobody provides Any (any)"},
		{"", "type Needs struct{ Tools registry.Snapshot }", "Nobody provides Tools (registry.Snapshot)"},
		{"", "type Needs struct{ Tools **registry.Snapshot }", "Nobody provides Tools (**registry.Snapshot)"},
		{"", "type Needs struct{ Tools []*registry.Snapshot }", "Nobody provides Tools (a type without a name)"},
		{"", "type Needs struct{ Inner struct{ Tools *registry.Snapshot } }", "Nobody provides Inner"},
		{"", "type Tools registry.Entry\n\ntype Needs struct{ All *Tools }", "Nobody provides All"},
		{`"net/http"`, "type Needs struct{ HTTP *http.Client }", "Nobody provides HTTP (*http.Client)"},
		{`"example.com/other/registry"`, "type Needs struct{ X forecast.Service }", "Nobody provides X (forecast.Service)"},
		{"", "type Needs struct{ Spec registry.Optional[registry.Utterance] }", ""},
		{"", "type Needs struct{ Tools registry.Optional[*registry.Snapshot] }", ""},
		{"", "type Needs struct{ Count registry.Optional[int] }", "Nobody provides Count (registry.Optional[int]). A field"},
		{"", "type Needs struct{ Tools registry.Optional[[]int] }", "Nobody provides Tools (a type without a name)"},
		{"", "type Needs struct{ Spec registry.Utterance }", "Nobody provides Spec (registry.Utterance) in voice mode. Take the mode out of allowedModes"},
	}
	for _, tt := range tests {
		t.Run(tt.needs, func(t *testing.T) {
			dir := newProject(t, "alpha")
			change(t, dir, "tools/alpha/handler.go", "type Needs struct{}", tt.needs)
			if tt.imports != "" {
				change(t, dir, "tools/alpha/handler.go", "\t\"context\"\n", "\t\"context\"\n\t"+tt.imports+"\n")
			}
			report, err := Lint(Options{Dir: dir, Provided: theirs()})
			if err != nil {
				t.Fatal(err)
			}
			if got := findingLines(report); (tt.want == "") != (report.Errors() == 0) || !strings.Contains(got, tt.want) || report.Errors() > 1 {
				t.Errorf("want %q, got\n%s", tt.want, got)
			}
		})
	}
}

// TestLeftOut builds tools of which the go command leaves files out: that is said, and
// not that something is missing.
func TestLeftOut(t *testing.T) {
	other := map[string]string{"linux": "windows", "windows": "linux"}[runtime.GOOS]
	if other == "" {
		other = "linux"
	}
	move := func(dir, name, header string) error {
		from := filepath.Join(dir, "tools/alpha/handler.go")
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.Remove(from)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "tools/alpha", name), append([]byte(header), data...), 0o644)
		}
		return err
	}
	add := func(name, text string) func(string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tools/alpha", name), []byte(text), 0o644)
		}
	}
	tests := map[string]struct {
		spoil  func(dir string) error
		want   string
		errors int
	}{
		"a tag":          {func(dir string) error { return move(dir, "handler.go", "//go:build special\n\n") }, "handler.go:0 #handlergo : The go command leaves this file out: its build constraint //go:build special is not met. So the tool has no handler", 1},
		"another system": {func(dir string) error { return move(dir, "handler.go", "//go:build "+other+"\n\n") }, "its build constraint //go:build " + other + " is not met", 1},
		"this system":    {func(dir string) error { return move(dir, "handler.go", "//go:build "+runtime.GOOS+"\n\n") }, "warning tools/alpha/handler.go:0 #handlergo : The build constraint", 0},
		"a suffix":       {func(dir string) error { return move(dir, "handler_"+other+".go", "") }, "must stand in handler.go; the go command leaves this file out: its name ends in that of another system", 2},
		"a test":         {func(dir string) error { return move(dir, "handler_test.go", "") }, "must stand in handler.go; the go command leaves this file out: its name ends in _test.go", 2},
		"another name":   {func(dir string) error { return move(dir, "main.go", "") }, "tools/alpha/main.go:0 #handlergo : Execute stands here, and must stand in handler.go.", 2},
		"cgo":            {add("sound.go", "package alpha\n\nimport \"C\"\n"), `sound.go:0 #handlergo : The go command leaves this file out: it imports "C", and the gateway is built without cgo`, 1},
		"a generator":    {add("gen.go", "//go:build ignore\n\npackage main\n"), "warning tools/alpha/gen.go:0", 0},
		"needs in a test": {func(dir string) error {
			change := strings.NewReplacer("type Needs struct{}", "")
			data, err := os.ReadFile(filepath.Join(dir, "tools/alpha/handler.go"))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "tools/alpha/handler.go"), []byte(change.Replace(string(data))), 0o644)
			}
			if err == nil {
				err = add("needs_test.go", "package alpha\n\ntype Needs struct{}\n")(dir)
			}
			return err
		}, "It is declared in needs_test.go, which the go command leaves out: its name ends in _test.go", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			if err := tt.spoil(dir); err != nil {
				t.Fatal(err)
			}
			report, err := Lint(Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if got := findingLines(report); report.Errors() != tt.errors || !strings.Contains(got, tt.want) {
				t.Errorf("want %d errors and %q, got\n%s", tt.errors, tt.want, got)
			}
		})
	}
}
