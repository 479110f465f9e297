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
		back    any
	}{
		{"string", jsontype.String, "string", "string"},
		{"number", jsontype.Number, "number", "number"},
		{[]any{"integer", "number"}, jsontype.Number, "number", "number"},
		{[]any{"null", "object"}, jsontype.Null | jsontype.Object, "object or null", []any{"object", "null"}},
		{[]any{"colour", 1, "null"}, jsontype.Null, "null", "null"},
		{7, 0, "", []any{}},
	} {
		got := jsontype.Parse(tt.value)
		if got != tt.want || got.String() != tt.printed {
			t.Errorf("%v is %d %q, want %d %q", tt.value, got, got, tt.want, tt.printed)
		}
		if diff := cmp.Diff(tt.back, got.Value()); diff != "" {
			t.Errorf("%v printed (-want +got):\n%s", tt.value, diff)
		}
	}
}
