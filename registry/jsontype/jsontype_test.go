package jsontype_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/jsontype"
)

func TestSets(t *testing.T) {
	for _, tt := range []struct {
		value   any
		want    jsontype.Set
		printed string
		inside  []string
		back    any
	}{
		{"string", jsontype.String, "string", []string{"string"}, "string"},
		{"number", jsontype.Number, "number", []string{"number", "integer"}, "number"},
		{[]any{"integer", "number"}, jsontype.Number, "number", []string{"number", "integer"}, "number"},
		{[]any{"null", "object"}, jsontype.Null | jsontype.Object, "object or null", []string{"object", "null"}, []any{"object", "null"}},
		{[]any{"colour", 1, "null"}, jsontype.Null, "null", []string{"null"}, "null"},
		{7, 0, "", nil, []any{}},
	} {
		got := jsontype.Parse(tt.value)
		if got != tt.want || got.String() != tt.printed {
			t.Errorf("%v is %d %q, want %d %q", tt.value, got, got, tt.want, tt.printed)
		}
		if diff := cmp.Diff(tt.inside, got.Inside()); diff != "" {
			t.Errorf("inside %v (-want +got):\n%s", tt.value, diff)
		}
		if diff := cmp.Diff(tt.back, got.Value()); diff != "" {
			t.Errorf("%v printed (-want +got):\n%s", tt.value, diff)
		}
	}
}
