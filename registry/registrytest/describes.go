package registrytest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

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
