package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// everyFormat has a property for each format.
func everyFormat(t testing.TB) *Schema {
	t.Helper()
	var props []string
	for _, format := range formats {
		props = append(props, fmt.Sprintf(`%q:{"type":"string","format":%q}`, format, format))
	}
	params, problems := CompileParameters(json.RawMessage(`{"type":"object","properties":{` + strings.Join(props, ",") + `},"additionalProperties":false}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return params
}

func TestFormats(t *testing.T) {
	params := everyFormat(t)
	tests := []struct {
		format    string
		good, bad []string
	}{
		{"date", []string{"2026-02-28", "2024-02-29"}, []string{"2026-02-29", "2026-2-1", "today", ""}},
		{"time", []string{"23:59:59Z", "12:00:00.5+02:00"}, []string{"12:00", "25:00:00Z", "12:00:00", "+9:00:00Z", "10:+5:00Z", "10:00:00+01:-0", ""}},
		{"date-time", []string{"2026-11-20T10:00:00Z", "2026-11-20t10:00:00.123-05:00"}, []string{"2026-11-20", "2026-11-20 10:00:00Z", "2026-11-20T10:00:00", "2026-11-20T+1:00:00Z", "2026-11-20T10:00:00++1:00", ""}},
		{"email", []string{"ada@example.org", "a+b@c.de"}, []string{"ada", "@example.org", "ada@", ""}},
		{"uri", []string{"https://example.org/x?y#z", "mailto:ada@example.org"}, []string{"/x", "example.org", "http://[", ""}},
		{"uuid", []string{"123e4567-e89b-12d3-a456-426614174000"}, []string{"123e4567e89b12d3a456426614174000", "x", ""}},
		{"ipv4", []string{"127.0.0.1"}, []string{"127.0.0", "256.0.0.1", "::1", "+1.2.3.4", "1.2.3.-0", "00.1.2.3", ""}},
		{"ipv6", []string{"::1", "2001:db8::1"}, []string{"127.0.0.1", ":::1", ""}},
	}
	if len(tests) != len(formats) {
		t.Errorf("%d formats are tested of %d", len(tests), len(formats))
	}
	for _, tt := range tests {
		for i, s := range append(tt.good, tt.bad...) {
			err := params.schema.Validate(map[string]any{tt.format: s})
			if good := i < len(tt.good); (err == nil) != good {
				t.Errorf("%s %q: %v", tt.format, s, err)
			}
			if err != nil && !strings.HasPrefix(params.explain(err, map[string]any{tt.format: s})[0].Message, "must be a") {
				t.Errorf("%s %q: %v", tt.format, s, params.explain(err, map[string]any{tt.format: s}))
			}
		}
	}
}

// FuzzFormats looks for a text that makes a format check panic: the library's own code runs on a model's input.
func FuzzFormats(f *testing.F) {
	for _, seed := range []string{"", "12:00:00.", "23:59:60Z", "2026-11-20T10:00:00+", "a@[IPv6:", "http://[::1", "1.2.3.4", "::", "x@y", "12:00:00"} {
		f.Add(seed)
	}
	params := everyFormat(f)
	f.Fuzz(func(t *testing.T, s string) {
		v := map[string]any{}
		for _, format := range formats {
			v[format] = s
		}
		err := params.schema.Validate(v)
		if err == nil {
			t.Fatalf("%q is of every format", s)
		}
		if problems := params.explain(err, v); len(problems) == 0 {
			t.Fatal("no problem")
		}
	})
}
