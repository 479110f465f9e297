package textutil

import (
	"strings"
	"testing"
)

// TestQuote: user names can neither control a terminal nor break a table.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"mallory": "mallory", "a/b c": "a/b c", "Zoë": "Zoë", "": `""`,
		"\x1b[2J": `"\x1b[2J"`, "a\tb": `"a\tb"`, "a\xff": `"a\xff"`, "\u202eb": `"\u202eb"`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestStatus: one line that is drawn repeatedly, never longer than the terminal is wide, and that leaves nothing behind.
func TestStatus(t *testing.T) {
	var b strings.Builder
	s := Status{W: &b, Width: 10}
	s.Clear()
	if b.Len() > 0 {
		t.Errorf("before the first line it wrote %q", b.String())
	}
	s.Show("00:01  sessions 0")
	s.Show("00:02  sessions 0")
	s.Clear()
	if got := b.String(); got != "\r\x1b[K00:01  se\r\x1b[K00:02  se\r\x1b[K" {
		t.Errorf("it wrote %q", got)
	}
}

// TestCut: a line that is too long ends with an ellipsis in the last column.
func TestCut(t *testing.T) {
	for _, tc := range []struct {
		line  string
		width int
		want  string
	}{{"äbcdef", 6, "äbcdef"}, {"äbcdef", 5, "äbcd…"}, {"äbcdef", 1, "äbcdef"}, {"äbcdef", 0, "äbcdef"}} {
		if got := Cut(tc.line, tc.width); got != tc.want {
			t.Errorf("%q at %d: %q, want %q", tc.line, tc.width, got, tc.want)
		}
	}
}
