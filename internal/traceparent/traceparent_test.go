package traceparent

import (
	"context"
	"strings"
	"testing"
)

const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestParse reads headers as section 3.2 of the specification has them.
func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		valid: true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":      true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": true, // a version to come
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":      false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01":      false,
		"00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01":      false,
		"":                                    false,
		strings.Repeat("0", 55):               false,
		strings.Replace(valid, "01", "0", 1):  false,
		" " + valid:                           false,
		strings.Replace(valid, "-01", "-", 1): false,
	} {
		p, ok := Parse(text)
		if ok != want || ok == p.IsZero() {
			t.Errorf("%q is read as %v (valid: %v)", text, p, ok)
		}
	}
}

// TestContext carries a span through a context.
func TestContext(t *testing.T) {
	p, _ := Parse(valid)
	ctx := context.Background()
	if From(ctx) != (Parent{}) || From(With(ctx, Parent{})) != (Parent{}) || From(With(ctx, p)) != p {
		t.Error("a context does not keep the span that it was given")
	}
	if p.String() != valid || (Parent{}).String() != "" {
		t.Errorf("it is written as %q and %q", p, Parent{})
	}
}

// FuzzParse: what is read of a header of today's version is written as it was, except for flags that
// nobody knows.
func FuzzParse(f *testing.F) {
	f.Add(valid)
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := Parse(text)
		if !ok {
			return
		}
		if got := p.String(); got[2:53] != text[2:53] {
			t.Errorf("%q became %q", text, got)
		}
		if again, ok := Parse(p.String()); !ok || again != p {
			t.Errorf("%q does not come back from %q", text, p.String())
		}
	})
}
