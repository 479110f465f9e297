package registry

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

const listParameters = `parameters: {"type":"object","additionalProperties":false,"required":["names"],"properties":{
	"names":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["a","b","c"]}},
	"n":{"type":"integer"},
	"deep":{"type":"object","additionalProperties":false,"properties":{"rows":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["id"],
		"properties":{"id":{"type":"string"},"size":{"type":"integer","default":7},"tags":{"type":"array","items":{"type":"string","minLength":2}}}}}}}}}`

// lists is a registry with one tool that takes lists.
func lists(t testing.TB, seen *[]document.Problem, changes ...string) *Registry {
	t.Helper()
	type args struct {
		Names []string        `json:"names"`
		N     int             `json:"n"`
		Deep  json.RawMessage `json:"deep"`
	}
	e, opts, _ := simple(t, nil, append([]string{listParameters}, changes...)...)
	opts.Handlers["probe"] = Bind(func(_ context.Context, c Call[args, none]) (Result, error) {
		*seen = c.Invalid
		return Result{Data: c.Args}, nil
	})
	return mustLoad(t, opts, e)
}

// TestTheValidPartOfAList: a reading tool runs with the valid items, and reports the others with their positions; a
// writing tool is refused.
func TestTheValidPartOfAList(t *testing.T) {
	for name, tc := range map[string]struct {
		args, want string // want is empty if the call is refused
		invalid    string // the paths
	}{
		"all valid":            {`{"names":["a","b"]}`, `{"names":["a","b"]}`, ""},
		"one unknown":          {`{"names":["a","x","b"]}`, `{"names":["a","b"]}`, "/names/1"},
		"another type":         {`{"names":[1,"a",null]}`, `{"names":["a"]}`, "/names/0 /names/2"},
		"too many without it":  {`{"names":["a","x","b","c"]}`, `{"names":["a","b","c"]}`, "/names/1"},
		"too many in any case": {`{"names":["a","b","c","a","x"]}`, "", "/names /names/4"},
		"none valid":           {`{"names":["x","y"]}`, "", "/names/0 /names/1"},
		"something else wrong": {`{"names":["a","x"],"n":"many"}`, "", "/n /names/1"},
		"an unknown argument":  {`{"names":["a","x"],"m":1}`, "", "/m /names/1"},
		"not a list":           {`{"names":"a"}`, "", "/names"},
		"inside of objects": {`{"names":["a"],"deep":{"rows":[{"id":"1"},{"size":2},{"id":"3","tags":["ok","x","yes"]},{"id":4}]}}`,
			`{"deep":{"rows":[{"id":"1","size":7},{"id":"3","size":7,"tags":["ok","yes"]}]},"names":["a"]}`, "/deep/rows/1/id /deep/rows/2/tags/1 /deep/rows/3/id"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []document.Problem
			p, refused := lists(t, &seen).Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(tc.args))
			var paths []string
			if refused != nil {
				checkEnvelope(t, *refused)
				var details struct{ Errors []document.Problem }
				if err := json.Unmarshal(refused.Error.Details, &details); err != nil || tc.want != "" {
					t.Fatalf("%s %v", refused.Encode(), err)
				}
				for _, one := range details.Errors {
					paths = append(paths, one.Path)
				}
			} else {
				if got := string(p.Args()); got != tc.want {
					t.Fatalf("ran with %s", got)
				}
				env := p.Run(t.Context(), Session{})
				checkEnvelope(t, env)
				if diff := cmp.Diff(env.Meta.Invalid, seen); diff != "" || !env.OK {
					t.Errorf("the handler saw others: %s", diff)
				}
				for _, one := range env.Meta.Invalid {
					paths = append(paths, one.Path)
				}
			}
			if diff := cmp.Diff(tc.invalid, strings.Join(paths, " ")); diff != "" {
				t.Error(diff)
			}
			if p, refused := lists(t, &seen, writes, `category: "action"`).Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(tc.args)); (refused == nil) != (tc.invalid == "") {
				t.Errorf("a tool that writes: %+v", p)
			}
		})
	}
}

// TestManyInvalidItems: the first ones are named, the others counted.
func TestManyInvalidItems(t *testing.T) {
	var seen []document.Problem
	p, refused := lists(t, &seen).Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(`{"names":["a"`+strings.Repeat(`,"x"`, 100)+`]}`))
	if refused != nil || len(p.Invalid()) != document.MaxProblems+1 || p.Invalid()[document.MaxProblems].Message != "and 80 more" {
		t.Errorf("%+v %+v", p, refused)
	}
}

// FuzzTheValidPart: the remaining items of a list are valid, and the removed ones are named.
func FuzzTheValidPart(f *testing.F) {
	f.Add(`{"names":["a","x"],"deep":{"rows":[[],{"id":"1","tags":["x",["y"]]}]}}`)
	var seen []document.Problem
	s := lists(f, &seen).Snapshot()
	f.Fuzz(func(t *testing.T, args string) {
		p, refused := s.Prepare("probe", spec.ModeText, json.RawMessage(args))
		if refused != nil {
			return
		}
		again, refused := s.Prepare("probe", spec.ModeText, p.Args())
		if refused != nil || len(again.Invalid()) > 0 || string(again.Args()) != string(p.Args()) {
			t.Errorf("%s is left of %s", p.Args(), args)
		}
	})
}
