package kb

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	for word, want := range map[string]string{
		"Núñez": "nunez", "GRÜNWALD": "grunwald", "Strauß": "strauss", "STRAUẞ": "strauss", "Sørensen": "sorensen", "Łukasz": "lukasz",
		"Ægir": "aegir", "œuvre": "oeuvre", "Dvořák": "dvorak", "Yılmaz": "yilmaz", "İzmir": "izmir", "Ångström": "angstrom", "ｆｕｌｌ": "full",
		"ﬁnance": "finance", "e\u0301te\u0301": "ete", "Ὀδυσσεύς": "οδυσσευσ", "Ёлка": "елка", "Þór": "thor", "हिन्दी": "हिन्दी",
	} {
		if got := Fold(lower(word)); got != want {
			t.Errorf("%s is folded to %q, want %q", word, got, want)
		}
	}
	for word, want := range map[string]string{"müller": "mueller", "jörg": "joerg", "händel": "haendel", "søren": "soeren", "åsa": "aasa", "müßig": "muessig", "nunez": "", "núñez": ""} {
		if got := respell(word); got != want {
			t.Errorf("%s is respelt %q, want %q", word, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"Ada's, James' and O’Brien":    {"ada", "james", "and", "obrien+brien"},
		"L'hôtel d'Angelo":             {"lhôtel+hôtel", "dangelo+angelo"},
		"an e-mail, first-aid-kit -x-": {"an", "e+email", "mail", "first+firstaid+firstaidkit", "aid+aidkit", "kit", "x"},
		"Loom L-500 v2.1 snake_case":   {"loom", "l+l500", "500", "v2", "1", "snake", "case"},
		"東京 に行く":                       {"東", "京", "に", "行", "く"},
		"' - '' ’":                     {},
		"":                             {},
	} {
		got := []string{}
		for _, token := range Tokens(text) {
			got = append(got, strings.Join(append([]string{token.Text}, token.Also...), "+"))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestDetect(t *testing.T) {
	a := &Ranker{dialects: load()}
	for text, want := range map[string]Language{
		"The parents may stay at home for sixteen weeks.":                 "en",
		"Bei Feuer das Gebäude über die Treppen verlassen.":               "de",
		"Cada empleado tiene los días que pide con antelación.":           "es",
		"Les salariés posent leurs congés deux mois avant.":               "fr",
		"I dipendenti chiedono le ferie e non alla direzione della casa.": "it",
		"O cliente tem trinta dias para devolver as peças com nós":        "pt",
		"Medewerkers vragen hun vrije dagen aan bij de leiding.":          "nl",
		"Datenschutzerklärung und Gewährleistung":                         "de",
		"Joaquín Núñez":    Unknown,
		"Loom 700":         Unknown,
		"":                 Unknown,
		"babe bibi dodo 1": Unknown,
	} {
		if got := a.detect(Tokens(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestQuestion: stop words of the query's language are left out, those of another only count less, and a query of stop
// words keeps them.
func TestQuestion(t *testing.T) {
	a := &Ranker{dialects: load()}
	show := func(text string, languages ...Language) []string {
		var all []string
		for _, w := range a.Question(text, languages) {
			mark := ""
			if w.Weak {
				mark = "?"
			}
			all = append(all, w.Word+mark)
		}
		return all
	}
	for text, want := range map[string][]string{
		"Who is the keeper of the keys?":  {"keeper", "keys"},
		"Wer hat die Schlüssel für mich?": {"schlüssel"},
		"die Schlüssel":                   {"die?", "schlüssel"},
		"was Schlüssel":                   {"was?", "schlüssel"},
		"who are you":                     {"who", "are", "you"},
		"war memorial":                    {"war?", "memorial"},
		"Hello, could you please tell me where the keys are?":           {"hello?", "tell?", "keys"},
		"Entschuldigung, ich möchte gern wissen, wo die Schlüssel sind": {"entschuldigung?", "möchte?", "gern?", "wissen?", "schlüssel"},
	} {
		if diff := gocmp.Diff(want, show(text, "de", "en")); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if n := len(a.Question(strings.Repeat("a1 b2 c3 d4 e5 f6 g7 h8 i9 j10 k11 l12 m13 n14 o15 p16 q17 ", 1)+
		"r1 s2 t3 u4 v5 w6 x7 y8 z9 aa1 bb2 cc3 dd4 ee5 ff6 gg7 hh8 ii9", nil)); n != MaxAsked {
		t.Errorf("%d words are asked for", n)
	}
	w := a.Question("Häuser", []Language{"de", "en"})[0]
	if diff := gocmp.Diff([]string{"hauser", "haeuser"}, w.Surfaces); diff != "" || !slices.Contains(w.Forms, "haus") {
		t.Errorf("%v %s", w.Forms, diff)
	}
}

// TestSameWord: a record's word is found by the same word in a query, in every language, with its accents and
// without.
func TestSameWord(t *testing.T) {
	a := &Ranker{dialects: load()}
	for _, language := range append(Languages(), Unknown) {
		r := (&Ranker{dialects: a.dialects, fixed: language}).NewReader()
		for _, word := range strings.Fields("canción habitaciones Häuser Straße société qualità coração vrijheid running queries Øre aprendices l'été o'brien's") {
			term := r.Terms(word, cmp.Or(language, "en"), true)[0]
			asked := a.Question(word, []Language{"de", "es", "fr", "it", "pt", "nl"})[0]
			for _, form := range term.Forms[:1] {
				if !slices.Contains(asked.Forms, form) {
					t.Errorf("%s in %q is found by %v, and asked for as %v", word, language, term.Forms, asked.Forms)
				}
			}
			if term.Surface != asked.Surfaces[0] {
				t.Errorf("%s is %q in a record and %q in a question", word, term.Surface, asked.Surfaces[0])
			}
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"Ada's e-mail", "L'hôtel ’ '' -", "ΌΣΟΣ \u0301x", "İI", "\xff\xfe", strings.Repeat("ß", 99)} {
		f.Add(seed)
	}
	a := &Ranker{dialects: load()}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, term := range a.NewReader().Terms(text, Language("de"), true) {
			if term.Start < last || term.End <= term.Start || term.End > len(text) {
				t.Fatalf("%q: %d to %d after %d", text, term.Start, term.End, last)
			}
			last = term.End
			for _, form := range term.Forms {
				if form == "" || strings.ContainsAny(form, " \n") || utf8.ValidString(text) && !utf8.ValidString(form) {
					t.Fatalf("%q has the form %q", text, form)
				}
			}
		}
		if len(a.Question(text, Languages())) > MaxAsked {
			t.Fatal("too many words are asked for")
		}
		_ = a.detect(Tokens(text))
	})
}
