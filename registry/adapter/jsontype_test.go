package adapter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSets(t *testing.T) {
	for _, tt := range []struct {
		value   any
		want    typeSet
		printed string
		back    any
	}{
		{"string", typeString, "string", "string"},
		{"number", typeNumber, "number", "number"},
		{[]any{"integer", "number"}, typeNumber, "number", "number"},
		{[]any{"null", "object"}, typeNull | typeObject, "object or null", []any{"object", "null"}},
		{[]any{"colour", 1, "null"}, typeNull, "null", "null"},
		{7, 0, "", []any{}},
	} {
		got := typesOf(newObject("", "type", tt.value))
		if got != tt.want || got.String() != tt.printed {
			t.Errorf("%v is %d %q, want %d %q", tt.value, got, got, tt.want, tt.printed)
		}
		if diff := cmp.Diff(tt.back, got.Value()); diff != "" {
			t.Errorf("%v printed (-want +got):\n%s", tt.value, diff)
		}
	}
}
