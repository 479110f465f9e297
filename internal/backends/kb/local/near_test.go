package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

// slow is the distance without any limit or shortcut.
func slow(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range b {
		d[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		a, b := randomWord(r, r.IntN(10)), randomWord(r, r.IntN(10))
		for most := range 4 {
			want := slow(a, b)
			if want > most {
				want = -1
			}
			if got := distance(a, b, most); got != want {
				t.Fatalf("%q and %q are %d apart, not %d (at most %d)", string(a), string(b), want, got, most)
			}
		}
	}
}

func randomWord(r *rand.Rand, n int) []rune {
	word := make([]rune, n)
	for i := range word {
		word[i] = 'a' + rune(r.IntN(4))
	}
	return word
}

// vocabularyOf has words of one record each.
func vocabularyOf(all ...string) *vocabulary {
	v := newVocabulary()
	for _, word := range all {
		v.add([]recordWords{said(word)}, 1)
	}
	return v
}

// said is a record with words that are their own stems.
func said(text string) recordWords {
	var r recordWords
	for word := range strings.FieldsSeq(text) {
		r.parts[2] = append(r.parts[2], kb.Term{Surface: word, Forms: []string{word}})
	}
	r.in = "de"
	return r
}

// TestNeighboursAreAllFound: one typo of every kind anywhere in a word, and two that are not swaps in a long one, are
// found among thousands of words.
func TestNeighboursAreAllFound(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	letters := []rune("abcdefghijklmnopqrstuvwxyz")
	var all []string
	for len(all) < 3000 {
		word := make([]rune, 4+r.IntN(9))
		for i := range word {
			word[i] = letters[r.IntN(26)]
		}
		all = append(all, string(word))
	}
	v := vocabularyOf(all...)
	typo := func(word []rune, kind int) []rune {
		at, letter := r.IntN(len(word)-1), letters[r.IntN(26)]
		switch kind {
		case 0:
			return slices.Insert(slices.Clone(word), at, letter)
		case 1:
			return slices.Delete(slices.Clone(word), at, at+1)
		case 2:
			word = slices.Clone(word)
			word[at] = letter
			return word
		}
		word = slices.Clone(word)
		word[at], word[at+1] = word[at+1], word[at]
		return word
	}
	for i, right := range all {
		asked := typo([]rune(right), i%4)
		if len(right) >= 9 && i%3 == 0 && i%4 != 3 {
			asked = typo(asked, i%3)
		}
		if len(asked) < 4 || string(asked) == right || slow(asked, []rune(right)) > min(edits(len(asked)), edits(len(right))) {
			continue
		}
		found := v.neighbours(string(asked), 100)
		if !slices.ContainsFunc(found, func(n neighbour) bool { return v.surfaces[n.at].text == right }) {
			t.Errorf("%q does not find %q (distance %d)", string(asked), right, slow(asked, []rune(right)))
		}
	}
	if found := v.neighbours("abc", 10); found != nil {
		t.Errorf("a word of three letters has neighbours: %v", found)
	}
}

func TestSplit(t *testing.T) {
	v := vocabularyOf("kundigung", "frist", "reise", "kosten", "abrechnung", "segel", "tuch", "werk")
	for word, want := range map[string]string{
		"kundigungsfrist": "kundigung frist", "reisekostenabrechnung": "reise kosten abrechnung", "segeltuch": "segel tuch",
		"frist": "", "fristlos": "", "unbekanntefrist": "", "segelboot": "", "tuch": "", "": "",
	} {
		if got := strings.Join(v.split(word), " "); got != want {
			t.Errorf("%s is split into %q, want %q", word, got, want)
		}
	}
}

func TestSounds(t *testing.T) {
	for _, alike := range []string{"meier mayer maier meyer", "stephan stefan", "katherine catherine", "schmidt schmitt", "philipp filip", "thomas tomas", "jansen janssen"} {
		all := strings.Fields(alike)
		for _, word := range all[1:] {
			if soundOf(word) != soundOf(all[0]) {
				t.Errorf("%s sounds like %q, %s like %q", word, soundOf(word), all[0], soundOf(all[0]))
			}
		}
	}
	for _, word := range []string{"abc", "l500", "ñandu", ""} {
		if s := soundOf(word); s != "" {
			t.Errorf("%q sounds like %q", word, s)
		}
	}
}

// TestVocabularyForgets: after any additions and removals, the vocabulary has only the words of the current records, and
// does not grow.
func TestVocabularyForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	v := newVocabulary()
	var held []recordWords
	for i := range 3000 {
		if len(held) > 20 {
			gone := r.IntN(len(held))
			v.add(held[gone:gone+1], -1)
			held = slices.Delete(held, gone, gone+1)
		}
		record := said(fmt.Sprintf("common word%d letters%s other%s", r.IntN(50), string(randomWord(r, 6)), string(randomWord(r, 8))))
		held = append(held, record)
		v.add([]recordWords{record}, 1)
		if i%500 != 0 {
			continue
		}
		fresh := newVocabulary()
		fresh.add(held, 1)
		if diff := cmp.Diff(counts(fresh), counts(v)); diff != "" {
			t.Fatal(diff)
		}
	}
	if len(v.surfaces) > 4000 || len(v.terms) > 200 {
		t.Errorf("%d words and %d terms are left of %d records", len(v.surfaces), len(v.terms), len(held))
	}
	v.add(held, -1)
	if n := counts(v); len(n) > 0 || v.held() != nil {
		t.Errorf("%v in %v remain in an empty vocabulary", n, v.held())
	}
}

// counts are the records of each word and term, and the ends that lead to one.
func counts(v *vocabulary) map[string]int {
	all := map[string]int{}
	for _, s := range v.surfaces {
		if s.records > 0 {
			all["word "+s.text] = int(s.records)
		}
	}
	for term, records := range v.terms {
		all["term "+term] = int(records)
	}
	for _, ends := range v.end {
		for _, term := range ends {
			all["end "+term]++
		}
	}
	return all
}

// TestASwapAndATypo: a word is near even if a swap across a cut and another typo change all of its parts.
func TestASwapAndATypo(t *testing.T) {
	v := newVocabulary()
	v.count(kb.Term{Surface: "marketeer", Forms: []string{"marketeer"}}, 1)
	if found := v.neighbours("makretear", 3); len(found) != 1 || found[0].distance != 2 {
		t.Errorf("found %v", found)
	}
}

// TestSpellings: a stem is also searched if it is as long as the word.
func TestSpellings(t *testing.T) {
	got := spellings(&kb.Asked{Surfaces: []string{"kely"}, Forms: []string{"kely", "keli"}})
	if diff := cmp.Diff([]string{"kely", "keli"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestCommonWordsChangeNoOrder: a common word changes no order among the records of a rare one, whichever way it is
// evaluated.
func TestCommonWordsChangeNoOrder(t *testing.T) {
	x, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	var records []kb.Record
	for i := range 6000 {
		rec := kb.Record{ID: fmt.Sprintf("doc:d%04d", i), Title: "Note", Text: strings.Repeat("common ", i%3) + "filler", LastUpdated: day}
		if i%25 == 0 {
			rec.Text += strings.Repeat(" seldom", 1+i%4)
		}
		rec.Normalize()
		records = append(records, rec)
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	s, err := x.begin()
	if err != nil {
		t.Fatal(err)
	}
	defer x.calls.Done()
	groups := []group{{share: 1, records: 240, variants: []variant{{"seldom", 1}}}, {share: 1, records: 4000, variants: []variant{{"common", 1}}}}
	narrow, err := s.bestWords(t.Context(), groups, &filter{to: 1 << 60}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := s.bestWords(t.Context(), groups, &filter{to: 1 << 60}, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wide, narrow); diff != "" || len(wide) != kb.Depth {
		t.Errorf("%d records: %s", len(wide), diff)
	}
}

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
