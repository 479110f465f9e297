package spec

import (
	"strings"
	"testing"
)

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{a}", "{{a}}", "{a.b} {", "}", "{{{a}}}", "{}", "{ä}", "[{a}][ {b}]", "[[", "[", "[]"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, s string, sections bool) {
		parsed, err := parseTemplate(s, sections)
		if err != nil {
			return
		}
		args := map[string]any{"a": "x"}
		if parsed.text(args, nil) == "" && s != "" && !strings.Contains(s, "{") {
			t.Errorf("%q renders to nothing", s)
		}
		if !strings.ContainsAny(s, "{}[]") && (parsed.text(args, nil) != s || parsed.key(args) != s) {
			t.Errorf("%q is %q and %q", s, parsed.text(args, nil), parsed.key(args))
		}
	})
}
