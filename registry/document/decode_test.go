package document

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ name, in, path, message string }{
		{"nothing", " ", "", "it is empty"},
		{"half", `{"a": [1`, "/a", "ends in the middle"},
		{"duplicate key", `{"a": {"b": 1, "c": 2, "b": 3}}`, "/a/b", "has the key"},
		{"duplicate key in another spelling", `{"a": 1, "\u0061": 2}`, "/a", "has the key"},
		{"trailing value", `{} {}`, "", "there is more after"},
		{"trailing bracket", `{}]`, "", "there is more after"},
		{"trailing comma", `[1,]`, "", "invalid character"},
		{"comma before brace", `{"a":1,}`, "", "invalid character"},
		{"place", "{\n  \"a\": tru}", "/a", "line 2"},
		{"too deep", strings.Repeat("[", 40) + strings.Repeat("]", 40), "/0/0/0/0", "nests deeper than 32"},
		{"too long", `"` + strings.Repeat("x", 70_000) + `"`, "", "at most 65536"},
		{"long number", `[` + strings.Repeat("9", 101) + `]`, "/0", "more than 100 digits"},
		{"exponent beyond by its digits", `[12e400]`, "/0", "beyond ten to the power of 400"},
		{"too many zeros", `[1` + strings.Repeat("0", 401) + `]`, "/0", "beyond ten to the power of 400"},
		{"enormous number", `[1, {"x": 1e999999999}]`, "/1/x", "exponent beyond"},
		{"tiny number", `1e-999999999`, "", "exponent beyond"},
		{"bad exponent", `1e99999999999999999999`, "", "exponent beyond"},
		{"not UTF-8", "\"\xff\"", "", "not UTF-8"},
		{"NaN", `{"a": NaN}`, "/a", "invalid character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems, _ := Decode([]byte(tt.in), MaxArgsBytes, MaxArgsDepth)
			if len(problems) != 1 {
				t.Fatalf("got %d problems: %v", len(problems), problems)
			}
			if !strings.HasPrefix(problems[0].Path, tt.path) || !strings.Contains(problems[0].Message, tt.message) {
				t.Errorf("got %s, want %q at %s", problems[0], tt.message, tt.path)
			}
		})
	}
}

func TestDecodeKeepsAll(t *testing.T) {
	v, problems, ok := Decode([]byte(`{"n": 12345678901234567890.5, "l": [null, true, "x"], "": {}}`), MaxArgsBytes, MaxArgsDepth)
	if !ok || len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]any{"n": json.Number("12345678901234567890.5"), "l": []any{nil, true, "x"}, "": map[string]any{}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeReportsAllDuplicates(t *testing.T) {
	_, problems, ok := Decode([]byte(`{"a": 1, "a": 2, "b": {"c": 1, "c": 1}, "n": 1e999}`), MaxArgsBytes, MaxArgsDepth)
	if !ok || len(problems) != 3 {
		t.Errorf("got %v", problems)
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{ "b" : 1, "a" : [ 1 , 2 ] }`, `{"a":[1,2],"b":1}`},
		{`{"a":{"z":1,"y":{"x":null}}}`, `{"a":{"y":{"x":null},"z":1}}`},
		{`"\u003c\u00e4\u0001\/\"\\\t\u2028"`, "\"<ä\\u0001/\\\"\\\\\\t\u2028\""},
		{`-0`, `0`}, {`0.0`, `0`}, {`-0e5`, `0`}, {`1.0`, `1`}, {`1e0`, `1`}, {`10e-1`, `1`}, {`100`, `100`}, {`1E2`, `100`}, {`1.50`, `1.5`},
		{`-12.340e1`, `-123.4`}, {`0.000001`, `0.000001`}, {`0.0000001`, `1e-7`}, {`1e21`, `1e+21`}, {`1e20`, `100000000000000000000`},
		{`123456789012345678901234567890`, `1.2345678901234567890123456789e+29`},
		{`10000000000000000001`, `10000000000000000001`}, {`9007199254740993`, `9007199254740993`},
		{`0.1000000000000000055511151231257827`, `0.1000000000000000055511151231257827`},
		{"1" + strings.Repeat("0", 94) + "1", "1." + strings.Repeat("0", 94) + "1e+95"},
		{`1.2e400`, `1.2e+400`}, {`0.1e-399`, `1e-400`}, {"0." + strings.Repeat("0", 500), `0`},
		{`true`, `true`}, {`[]`, `[]`}, {`{}`, `{}`}, {`""`, `""`},
	}
	for _, tt := range tests {
		got, err := canonical(json.RawMessage(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("canonical(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
		if again, err := canonical(got); err != nil || string(again) != string(got) {
			t.Errorf("the canonical form of %s is %s, %v", got, again, err)
		}
	}
	if _, err := canonical(json.RawMessage(`{"a":1,"a":1}`)); err == nil {
		t.Error("a duplicate key has a canonical form")
	}
}

func TestCanonicalIgnoresOrderAndSpelling(t *testing.T) {
	a, _ := canonical(json.RawMessage(`{"top_k": 5, "query": "\u0061"}`))
	b, _ := canonical(json.RawMessage(` {"query":"a","top_k":5.0}`))
	if string(a) != string(b) || len(a) == 0 {
		t.Errorf("%s and %s are the same arguments", a, b)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":1,"a":2}`, `[1,2.50,-0,1e-7,1E+30]`, `{"a":{"b":[{}]}}`, `"\ud800"`, `1 2`, `{"query":"x","top_k":3}`, "\"\u2028\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, problems, ok := Decode(data, MaxArgsBytes, MaxArgsDepth)
		if !ok && len(problems) == 0 {
			t.Fatal("refused without a problem")
		}
		if !ok || len(problems) > 0 {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is not JSON and was accepted", data)
		}
		canonical := AppendCanonical(nil, v)
		again, problems, _ := Decode(canonical, 64<<20, MaxArgsDepth)
		if len(problems) > 0 {
			t.Fatalf("the canonical form %s of %s is refused: %v", canonical, data, problems)
		}
		if diff := cmp.Diff(v, again, sameNumber); diff != "" {
			t.Fatalf("the canonical form %s of %s is another value: %s", canonical, data, diff)
		}
		if twice := AppendCanonical(nil, again); string(twice) != string(canonical) {
			t.Fatalf("the canonical form of %s is %s", canonical, twice)
		}
	})
}

var sameNumber = cmp.Comparer(func(a, b json.Number) bool {
	x, ok := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	return ok && ok2 && x.Cmp(y) == 0
})

func TestPointers(t *testing.T) {
	for _, p := range []Pointer{nil, {""}, {"a", "0"}, {"a/b", "c~d", "~1", "ä %"}} {
		got, ok := ParsePointer(p.String())
		if !ok || got.String() != p.String() || len(got) != len(p) {
			t.Errorf("%q read again is %q", p, got)
		}
		if got, ok := ParseFragment(p.fragment()); !ok || got.String() != p.String() {
			t.Errorf("%q as a fragment is %q, read again %q", p, p.fragment(), got)
		}
	}
	for _, bad := range []string{"a", "/~", "/~2", "/a~"} {
		if _, ok := ParsePointer(bad); ok {
			t.Errorf("%q is accepted as a pointer", bad)
		}
	}
}

// canonical is the canonical form of any JSON value.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	v, problems, _ := Decode(raw, 64<<20, MaxSpecDepth)
	if len(problems) > 0 {
		return nil, fmt.Errorf("no canonical form: %s", problems[0])
	}
	return AppendCanonical(nil, v), nil
}
