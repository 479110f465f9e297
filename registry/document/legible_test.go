package document

import (
	"strings"
	"testing"
)

func TestHidden(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext": "", "": "", "naïve 漢字 עברית العربية": "", "می\u200cخواهم": "", "👩\u200d💻 ❤\ufe0f": "", "abc\u200f": "", "क्\u200dष": "",
		"a\x00b": "U+0000", "a\x1bb": "U+001B", "a\rb": "U+000D", "a\u0085b": "U+0085", "\x7f": "U+007F",
		"a\u202eb": "U+202E", "a\u2066b": "U+2066", "a\u200bb": "U+200B", "a\u200db": "U+200D", "\ufeffa": "U+FEFF", "a\u00adb": "U+00AD",
		"a\U000e0041": "U+E0041", "a\u2028b": "U+2028", "a\u2060b": "U+2060", "a\u3164b": "U+3164", "a\ufffe": "U+FFFE", "a\u2063b": "U+2063",
	} {
		if got, _ := Hidden(text); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLoneSurrogate(t *testing.T) {
	for text, want := range map[string]int{
		`{"a":"\ud83d\ude00"}`: -1, `"\\ud800"`: -1, `"\u00e4"`: -1, `"\\\\ud800"`: -1, `""`: -1,
		`"\ud800"`: 1, `"\udc00"`: 1, `"x\uD83Dx"`: 2, `"\ud83d\ud83d"`: 1, `"\\\ud800"`: 3, `"\ud83d\ude00\ude00"`: 13, `"\ud8`: -1,
	} {
		if got := LoneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: at %d, want %d", text, got, want)
		}
	}
}

func TestWordless(t *testing.T) {
	for text, want := range map[string]bool{
		"Finds things.": false, "**Finds** `things`.": false, "[Find](http://a.b)": false, "Läuft": false, "漢字": false, "<b>x</b>": false, "a < b": false,
		"---": true, "***": true, "> ": true, "<br>": true, "<br/><hr />": true, "![logo](x.png)": true, "![logo][1]": true, "&nbsp;": true, "<!-- TODO -->": true,
		"[](http://a.b)": true, "| | |": true, "42": true, "…": true, "<https://a.b>": true, "https://a.b/c": true, "``": true, "<!-- open": true, "<img src=\"a b\">": true,
	} {
		if got := Wordless(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// FuzzLegible: any text has a result, and its place is in the text.
func FuzzLegible(f *testing.F) {
	for _, seed := range []string{"", "a\u202eb", `"\ud800"`, "<!--", "![[[](", "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if what, at := Hidden(text); what != "" && at >= len(text) {
			t.Errorf("%q: %s at %d", text, what, at)
		}
		if at := LoneSurrogate([]byte(text)); at >= len(text) || at >= 0 && text[at] != '\\' {
			t.Errorf("%q: at %d", text, at)
		}
		Wordless(text)
	})
}
