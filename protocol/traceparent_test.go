package protocol

import (
	"context"
	"strings"
	"testing"
)

const validTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestTraceParent reads headers according to section 3.2 of the specification.
func TestTraceParent(t *testing.T) {
	for text, want := range map[string]bool{
		validTrace: true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":      true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": true, // a future version
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":      false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01":      false,
		"00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01":      false,
		"":                      false,
		strings.Repeat("0", 55): false,
		strings.Replace(validTrace, "01", "0", 1): false,
		" " + validTrace: false,
		strings.Replace(validTrace, "-01", "-", 1): false,
	} {
		p, ok := ParseTraceParent(text)
		if ok != want || ok == p.IsZero() {
			t.Errorf("%q is read as %v (valid: %v)", text, p, ok)
		}
	}
}

// TestTraceParentInContext carries a span through a context.
func TestTraceParentInContext(t *testing.T) {
	p, _ := ParseTraceParent(validTrace)
	ctx := context.Background()
	if TraceParentFrom(ctx) != (TraceParent{}) || TraceParentFrom(WithTraceParent(ctx, TraceParent{})) != (TraceParent{}) || TraceParentFrom(WithTraceParent(ctx, p)) != p {
		t.Error("a context does not return its span")
	}
	if p.String() != validTrace || (TraceParent{}).String() != "" {
		t.Errorf("the headers are %q and %q", p, TraceParent{})
	}
}

// FuzzTraceParent: a header of the current version is unchanged after reading and writing, except for unknown flags.
func FuzzTraceParent(f *testing.F) {
	f.Add(validTrace)
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParseTraceParent(text)
		if !ok {
			return
		}
		if got := p.String(); got[2:53] != text[2:53] {
			t.Errorf("%q became %q", text, got)
		}
		if again, ok := ParseTraceParent(p.String()); !ok || again != p {
			t.Errorf("%q is not returned for %q", text, p.String())
		}
	})
}
