package kb_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"voicegw/internal/backends/kb"
)

func ranker(tb testing.TB) *kb.Ranker {
	tb.Helper()
	r, err := kb.NewRanker("")
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestPlain(t *testing.T) {
	for markdown, want := range map[string]string{
		"":                                    "",
		"# Head\n\nText **bold** and `code`.": "Head: Text bold and code.",
		"- one\n- two.\n* three":              "one; two. three",
		"1. first\n2) second":                 "first; second",
		"see [the page](https://e.org/a_b) ![pic](x.png)": "see the page pic",
		"> quoted\n---\n=====\n| a | b |\n|---|---|":      "quoted; | a | b |",
		"snake_case stays, 2 * 3 too":                     "snake_case stays, 2 * 3 too",
	} {
		if got := kb.Plain(markdown); got != want {
			t.Errorf("%q is %q, not %q", markdown, got, want)
		}
	}
}

func TestSnippet(t *testing.T) {
	r := ranker(t)
	filler := strings.Repeat("Nothing of interest stands in this sentence. ", 20)
	tests := []struct{ name, text, query, want string }{
		{"a short text as it is", "The **short** text.", "other", "The short text."},
		{"the beginning when nothing is found", filler, "zebra", "Nothing of interest"},
		{"the sentence with the word", filler + "The zebra eats grass. " + filler, "zebras", "…The zebra eats grass. Nothing"},
		{"where most words are together", "A zebra. " + filler + "Zebra and grass. " + filler, "zebra grass", "…Zebra and grass."},
		{"the end", filler + "Last is the zebra.", "zebra", "Last is the zebra."},
	}
	for _, test := range tests {
		got := r.Snippet(test.text, test.query, nil)
		if !strings.Contains(got, test.want) || utf8.RuneCountInString(got) > kb.SnippetRunes {
			t.Errorf("%s: %d characters, %q", test.name, utf8.RuneCountInString(got), got)
		}
		if trimmed := strings.Trim(got, "…"); !strings.Contains(kb.Plain(test.text), trimmed) {
			t.Errorf("%s: %q does not stand in the text", test.name, trimmed)
		}
	}
	if got := r.Snippet(filler, "zebra", nil); !strings.HasSuffix(got, "…") || strings.HasSuffix(strings.TrimSuffix(got, "…"), " ") {
		t.Errorf("the end is %q", got)
	}
}

func FuzzSnippet(f *testing.F) {
	r := ranker(f)
	f.Add("# H\n\n- a **b** [c](d)\n"+strings.Repeat("word ", 100), "word c")
	f.Add(strings.Repeat("ä", 1000), "ä")
	f.Add(strings.Repeat("ab\xff ", 200), "ab")
	f.Add(strings.Repeat("x", 500)+" zebra "+strings.Repeat("y", 500), "zebra")
	f.Fuzz(func(t *testing.T, text, query string) {
		got := r.Snippet(text, query, nil)
		if n := utf8.RuneCountInString(got); n > kb.SnippetRunes {
			t.Errorf("%d characters", n)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if kb.Plain(text) != "" && got == "" {
			t.Error("an empty snippet of a text")
		}
	})
}
