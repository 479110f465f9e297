package english

import (
	"slices"
	"strings"
	"testing"
)

func TestTermsStandWhereTheySay(t *testing.T) {
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	text := "The studio's INVOICES, and a café: e-mail x@y.org; 3 boats’ masts."
	var stems []string
	for _, term := range a.Terms(text) {
		stems = append(stems, term.Stem)
		if word := strings.ToLower(text[term.Start:term.End]); !strings.HasPrefix(word, term.Stem[:1]) {
			t.Errorf("%s is said to stand at %q", term.Stem, word)
		}
	}
	want := []string{"studio", "invoic", "café", "e", "mail", "x", "y.org", "3", "boat", "mast"}
	if !slices.Equal(stems, want) {
		t.Errorf("%q, not %q", stems, want)
	}
	if !slices.Equal(a.Stems(text), stems) {
		t.Errorf("Stems has %q", a.Stems(text))
	}
	if got := a.Stems("The, and of a."); len(got) != 0 {
		t.Errorf("stop words count: %q", got)
	}
}
